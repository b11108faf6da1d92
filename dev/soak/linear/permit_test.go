package linear_test

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-go/weir/breaker"
)

const (
	failuresToOpen = 3 // consecutive failures open the breaker
	probeCount     = 2
)

// event is a request for a permit, which gets a number, or the result of the call with that permit.
type event struct {
	asks             bool
	permit           int64
	outcome          breaker.Outcome
	called, returned int64
}

// breakerState is a breaker without a cooldown: if it is open, it allows a probe at the next
// request. It may refuse a request that read the clock earlier than the Record that opened the
// breaker did.
type breakerState struct {
	state     breaker.State
	epoch     int
	streak    int           // closed: consecutive failures
	doomed    int64         // closed: when the Record returns that opens the breaker, or 0
	opened    int64         // open: when the Record returns that opened the breaker
	out, good int           // half-open: probes in flight, and successful ones
	given     map[int64]int // the epoch of each permit in flight
}

func (s breakerState) clone() breakerState {
	s.given = maps.Clone(s.given)
	return s
}

func (s *breakerState) enter(to breaker.State) {
	s.state, s.epoch, s.streak, s.doomed, s.opened, s.out, s.good = to, s.epoch+1, 0, 0, 0, 0, 0
}

// open opens the breaker by a Record that returns at the given time.
func (s *breakerState) open(returned int64) {
	s.enter(breaker.Open)
	s.opened = returned
}

// refusesOverlapping reports whether Allow may refuse because it overlaps with the Record that
// opened the breaker: Allow read the clock earlier than this Record, and looked at the state later.
func (s *breakerState) refusesOverlapping(e *event) bool {
	return e.asks && s.state == breaker.Open && e.called < s.opened
}

// allow models Allow.
func (s *breakerState) allow(permit int64) bool {
	if s.state == breaker.Open {
		s.enter(breaker.HalfOpen)
	}
	if s.state == breaker.HalfOpen {
		if s.out+s.good == probeCount {
			return false
		}
		s.out++
	}
	s.given[permit] = s.epoch
	return true
}

// record models Record, and reports whether the result counted.
func (s *breakerState) record(e *event) bool {
	epoch := s.given[e.permit]
	delete(s.given, e.permit)
	if epoch != s.epoch {
		return false
	}
	switch {
	case s.state == breaker.HalfOpen:
		s.recordProbe(e)
	case e.outcome == breaker.Success:
		s.streak = 0
	case e.outcome == breaker.Failure:
		if s.streak++; s.streak == failuresToOpen {
			s.doomed = e.returned
		}
	}
	return true
}

func (s *breakerState) recordProbe(e *event) {
	s.out--
	if e.outcome == breaker.Success {
		s.good++
	}
	if e.outcome == breaker.Failure {
		s.open(e.returned)
	} else if s.good == probeCount {
		s.enter(breaker.Closed)
	}
}

// permitModel models which calls are allowed and which results count. A failure is counted at one
// moment and may open the breaker at a later one, both before Record returns.
func permitModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{breakerState{given: map[int64]int{}}} },
		Step: func(state, input, output any) (next []any) {
			e, was := input.(*event), state.(breakerState)
			var before []breakerState
			if was.doomed < e.called && was.doomed > 0 {
				was.open(was.doomed)
			}
			if was.doomed > 0 {
				opened := was.clone()
				opened.open(was.doomed)
				before = append(before, opened)
			}
			for _, s := range append(before, was) {
				if s.refusesOverlapping(e) && output == false {
					next = append(next, s)
				}
				s = s.clone()
				does := s.record
				if e.asks {
					does = func(e *event) bool { return s.allow(e.permit) }
				}
				if does(e) == output.(bool) {
					next = append(next, s)
				}
			}
			return next
		},
		Equal: func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) },
	}
	return model.ToModel()
}

// doEvent is like do, for an event, which records its own time.
func (c *client) doEvent(e *event, fn func() any) {
	c.do(e, fn)
	op := c.ops[len(c.ops)-1]
	e.called, e.returned = op.Call, op.Return
}

func TestPermits(t *testing.T) {
	opened := int64(0)
	checkModel(t, permitModel(), func() func(*client) {
		b := breaker.New("b", breaker.Config{
			ConsecutiveFailures: failuresToOpen, FailureRate: breaker.Off,
			Cooldown: breaker.Off, Probes: probeCount, ProbeTimeout: time.Hour, Recovery: breaker.Off,
			OnChange: func(breaker.Change) { atomic.AddInt64(&opened, 1) },
		})
		var permits atomic.Int64
		held := make([]map[int64]*breaker.Permit, workers)
		return func(c *client) {
			mine := held[c.id]
			if mine == nil {
				mine = map[int64]*breaker.Permit{}
				held[c.id] = mine
			}
			if len(mine) == 0 || len(mine) < 3 && c.IntN(2) == 0 {
				in := &event{asks: true, permit: permits.Add(1)}
				c.doEvent(in, func() any {
					p, err := b.Allow()
					if err != nil {
						return false
					}
					mine[in.permit] = &p
					return true
				})
				return
			}
			for number, p := range mine {
				// more successes and failures than ignored calls
				in := &event{permit: number, outcome: breaker.Outcome(c.IntN(5) % 3)}
				c.doEvent(in, func() any { return p.Record(t.Context(), nil, in.outcome) })
				delete(mine, number)
				return
			}
		}
	})
	if opened < int64(historyCount) {
		t.Fatalf("only %d transitions in %d histories", opened, historyCount)
	}
}
