package linear_test

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// shareState models a recovering breaker that never closes: one of every oneOf calls passes. A
// result counts in the round in which its call passed. At the full share a round has two calls, and
// otherwise one.
type shareState struct {
	oneOf, skipped int
	round          int
	good           int           // in this round
	given          map[int64]int // the round of each permit in flight
}

func (s *shareState) allow(permit int64) bool {
	if s.skipped++; s.skipped < s.oneOf {
		return false
	}
	s.skipped = 0
	s.given[permit] = s.round
	return true
}

func (s *shareState) record(e *event) {
	round := s.given[e.permit]
	delete(s.given, e.permit)
	switch {
	case round != s.round || e.outcome == breaker.Ignored:
	case e.outcome == breaker.Failure: // one failed call of two reaches the failure rate
		s.nextRound(min(2*s.oneOf, 8))
	case s.oneOf == 1 && s.good == 0:
		s.good++
	default:
		s.nextRound(max(s.oneOf/2, 1))
	}
}

func (s *shareState) nextRound(oneOf int) {
	s.oneOf, s.round, s.good = oneOf, s.round+1, 0
}

// shareModel models which calls pass. Results of earlier rounds count in the totals too.
func shareModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return shareState{oneOf: 8, skipped: 7, given: map[int64]int{}} },
		Step: func(state, input, output any) (bool, any) {
			s, e := state.(shareState), input.(*event)
			s.given = maps.Clone(s.given)
			if e.asks {
				return s.allow(e.permit) == output.(bool), s
			}
			s.record(e)
			return output.(bool), s
		},
		Equal: func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) },
	}
}

// recoveringBreaker returns a breaker in the state Recovering.
func recoveringBreaker(t *testing.T) *breaker.Breaker {
	b := breaker.New("b", breaker.Config{
		MinCalls: 2, FailureRate: 0.5, FailureRun: breaker.Off,
		Cooldown: breaker.Off, Probes: 1, ProbeTimeout: time.Hour, Recovery: time.Hour,
	})
	b.OpenFor(0)
	p, err := b.Allow()
	require.NoError(t, err)
	p.Record(breaker.Success)
	require.Equal(t, breaker.Recovering, b.State())
	return b
}

func TestTheShareOfARecoveringBreaker(t *testing.T) {
	var passed, refused atomic.Int64
	checkModel(t, shareModel(), func() func(*client) {
		b := recoveringBreaker(t)
		var permits atomic.Int64
		held := make([]map[int64]*breaker.Permit, workers)
		for i := range held {
			held[i] = map[int64]*breaker.Permit{}
		}
		return func(c *client) {
			mine := held[c.id]
			for number, p := range mine {
				if c.IntN(2) == 0 {
					break
				}
				// successes, failures, and a few ignored calls
				in := &event{permit: number, outcome: breaker.Outcome(min(c.IntN(12), 10) / 5)}
				c.do(in, func() any { return p.Record(in.outcome) })
				delete(mine, number)
				return
			}
			in := &event{asks: true, permit: permits.Add(1)}
			c.do(in, func() any {
				p, err := b.Allow()
				if err != nil {
					refused.Add(1)
					return false
				}
				passed.Add(1)
				mine[in.permit] = &p
				return true
			})
		}
	})
	require.Greater(t, passed.Load(), int64(2*historyCount))
	require.Greater(t, refused.Load(), int64(2*historyCount))
}
