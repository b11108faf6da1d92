package linear_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// shareState models a recovering breaker that never closes: one of every oneOf calls passes. A good
// round of calls doubles the share, and a failed one halves it. A result counts in the round in
// which its call passed. While a share passes, a round ends when its pending calls cannot change
// the verdict. When all calls pass, those since the share last fell are judged at each result, and
// pending calls count as successes.
type shareState struct {
	oneOf, skipped int
	calls          []passedCall // since the share last fell, in the order in which they passed
	round          int          // the index in calls of the first call of the round
}

type passedCall struct {
	permit  int64
	outcome breaker.Outcome // or inFlight
}

const inFlight breaker.Outcome = 255

func (s *shareState) allow(permit int64) bool {
	if s.skipped++; s.skipped < s.oneOf {
		return false
	}
	s.skipped = 0
	s.calls = append(s.calls, passedCall{permit, inFlight})
	return true
}

// record models Record. An ignored call decides nothing when it ends.
func (s *shareState) record(e *event) {
	i := slices.IndexFunc(s.calls, func(c passedCall) bool { return c.permit == e.permit })
	if i < 0 { // the share has fallen since
		return
	}
	s.calls[i].outcome = e.outcome
	switch {
	case e.outcome == breaker.Ignored:
	case s.oneOf == 1:
		if good, bad, pending := countCalls(s.calls); good+bad >= callsToJudge && bad >= good+pending {
			s.fall()
		}
	case i >= s.round:
		switch good, bad, pending := countCalls(s.calls[s.round:]); {
		case bad >= good+pending: // half of the calls are the failure rate
			s.fall()
		case bad+pending < good:
			s.oneOf, s.round = s.oneOf/2, len(s.calls)
		}
	}
}

func (s *shareState) fall() { s.oneOf, s.calls, s.round = min(2*s.oneOf, 8), nil, 0 }

// countCalls counts successes, failures, and the pending calls: those in flight that passed before
// one that has ended.
func countCalls(calls []passedCall) (good, bad, pending int) {
	running := 0
	for _, c := range calls {
		switch {
		case c.outcome == inFlight:
			running++
			continue
		case c.outcome == breaker.Success:
			good++
		case c.outcome == breaker.Failure:
			bad++
		}
		pending = running
	}
	return good, bad, pending
}

// shareModel models which calls pass after earlier calls that succeeded. Record always returns
// true, because a result of an earlier round counts in the totals.
func shareModel(earlier int64) porcupine.Model {
	first := shareState{oneOf: 8, skipped: 7}
	for i := range earlier {
		if first.allow(-i) {
			first.record(&event{permit: -i, outcome: breaker.Success})
		}
	}
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			s, e := state.(shareState), input.(*event)
			s.calls = slices.Clone(s.calls)
			if e.asks {
				return s.allow(e.permit) == output.(bool), s
			}
			s.record(e)
			return output.(bool), s
		},
		Equal: func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) },
	}
}

const callsToJudge = 2 // when all calls pass

// recoveringBreaker returns a breaker in the state Recovering, after calls that succeeded.
func recoveringBreaker(t *testing.T, earlier int64) *breaker.Breaker {
	b := breaker.New("b", breaker.Config{
		MinCalls: callsToJudge, FailureRate: 0.5, FailureRun: breaker.Off,
		Cooldown: breaker.Off, Probes: 1, ProbeTimeout: time.Hour, Recovery: time.Hour,
	})
	b.OpenFor(0)
	p, err := b.Allow()
	require.NoError(t, err)
	p.Record(t.Context(), nil, breaker.Success)
	for range earlier {
		if p, err := b.Allow(); err == nil {
			p.Record(t.Context(), nil, breaker.Success)
		}
	}
	require.Equal(t, breaker.Recovering, b.State())
	return b
}

func TestTheShareOfARecoveringBreaker(t *testing.T) {
	checkShare(t, 0) // one of eight calls passes at first
	checkShare(t, 7) // all calls pass at first
}

// checkShare checks histories that begin after earlier calls that succeeded.
func checkShare(t *testing.T, earlier int64) {
	t.Helper()
	var passed, refused atomic.Int64
	checkModel(t, shareModel(earlier), func() func(*client) {
		b := recoveringBreaker(t, earlier)
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
				c.do(in, func() any { return p.Record(t.Context(), nil, in.outcome) })
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
	// After few calls the share may not fall.
	require.Greater(t, refused.Load(), int64(historyCount/5))
}
