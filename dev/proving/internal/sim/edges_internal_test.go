package sim

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A context of package context that is derived from that of a call ends at the deadline of the
// call.
func TestADerivedContextEndsAtTheDeadline(t *testing.T) {
	waits := 0
	w := World{Service: healthyService, Clients: []Client{{Rate: 100, Timeout: 700 * ms}}, For: 5 * sec}
	f := Run(w, Maker{Name: "waits", New: func(s Setting) Guard {
		return testGuard(func(ctx context.Context, _ func(context.Context) error) error {
			from := s.run.now()
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			<-derived.Done()
			if s.run.now()-from == 700*ms && derived.Err() == context.DeadlineExceeded {
				waits++
			}
			return derived.Err()
		})
	}}, 1)
	require.Positive(t, f.Offered)
	require.Equal(t, f.Offered, waits)
	require.Equal(t, f.Offered, f.Failed)
	require.Zero(t, f.Sent)
}

// openingCounter is a guard that reports another opening with each call while opens returns true.
type openingCounter struct {
	Guard
	openings atomic.Int64
	opens    func() bool
}

func (c *openingCounter) Call(ctx context.Context, f func(context.Context) error) error {
	if c.opens() {
		c.openings.Add(1)
	}
	return c.Guard.Call(ctx, f)
}

func (c *openingCounter) Openings() int { return int(c.openings.Load()) }

func TestOnlyOpeningsInTheTroubleEndTheCountOfBadCalls(t *testing.T) {
	trouble := Span{10 * sec, 20 * sec}
	w := World{
		Service: healthyService,
		Faults:  []Fault{{Span: trouble, Down: true}},
		Clients: patientClient(100),
		For:     30 * sec,
		Trouble: trouble,
	}
	w.Service.ErrorRate = 0.1
	bad := func(opens Span) Figures {
		return Run(w, Maker{Name: "counter", New: func(s Setting) Guard {
			return &openingCounter{Guard: None().New(s), opens: func() bool { return opens.holds(s.run.now()) }}
		}}, 1)
	}
	before := bad(Span{2 * sec, 4 * sec})
	require.Greater(t, before.Openings, 100)
	require.Zero(t, before.OpeningsMeanwhile)
	// 1,000 calls fail during the outage, and a tenth of the 1,000 calls after it.
	require.InDelta(t, 1100, before.BadSentBeforeOpen, 4*34)
	within := bad(Span{12 * sec, 13 * sec})
	require.Equal(t, within.Openings, within.OpeningsMeanwhile)
	require.InDelta(t, 200, within.BadSentBeforeOpen, 4*14)
}

func TestASecondThatTheSpanCutsOffIsNone(t *testing.T) {
	var s steps
	for at := time.Duration(0); at < 10*sec; at += 10 * ms {
		step := s.at(at)
		step.offered++
		if at >= 9*sec {
			step.good++
		}
	}
	all := func(s step) bool { return s.good == s.offered }
	require.Equal(t, 9*sec, s.firstSecond(10*sec, all))
	require.Equal(t, time.Duration(-1), s.firstSecond(9900*ms, all))
	require.Equal(t, new(step), s.at(-1), "before the moment")
}
