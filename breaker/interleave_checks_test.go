package breaker_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// modelWatch collects changes, and checks that they come one at a time.
type modelWatch struct {
	busy  atomic.Bool
	twice atomic.Bool
	told  []breaker.Change // not guarded, so that the race detector finds concurrent deliveries

	halfOpenTimeout bool // a Config of the breaker sets HalfOpenTimeout
}

func (w *modelWatch) record(c breaker.Change) {
	if !w.busy.CompareAndSwap(false, true) {
		w.twice.Store(true)
	}
	w.told = append(w.told, c)
	runtime.Gosched()
	if len(w.told) == 20 { // until more changes wait than the queue holds
		modelYield(20_000)
	}
	w.busy.Store(false)
}

// check requires that the changes form a legal sequence, except for dropped changes.
func (w *modelWatch) check(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	require.False(t, w.twice.Load(), "two changes were delivered at once")
	require.NotEmpty(t, w.told)
	last, missing := breaker.Change{To: breaker.Closed}, int64(0)
	for _, c := range w.told {
		require.Greater(t, c.Seq(), last.Seq(), "out of order: %v after %v", c, last)
		missing += int64(c.Seq() - last.Seq() - 1)
		if c.Seq() == last.Seq()+1 {
			require.Equal(t, last.To, c.From, "%v after %v", c, last)
		}
		// in shadow mode: such a change begins no state, and has the time of its call
		says := c.From == c.To || last.From == last.To
		require.True(t, says || !c.At.Before(last.At), "%d, %v, was due %v before %d, %v", c.Seq(), c, last.At.Sub(c.At), last.Seq(), last)
		require.True(t, modelIsLegal(c, w.halfOpenTimeout), "%v, by %v", c, c.Origin())
		require.True(t, modelIsSound(c.Counts), "%v: %+v", c, c.Counts)
		last = c
	}
	missing += int64(b.LastSeq() - last.Seq())
	require.Equal(t, b.StatsNow().Dropped, missing, "what was not delivered was counted")
}

var (
	overrides = []breaker.State{breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow}
	states    = append([]breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.Recovering}, overrides...)
)

// modelIsLegal reports whether a breaker with or without a HalfOpenTimeout may make the transition.
func modelIsLegal(c breaker.Change, halfOpenTimeout bool) bool {
	forced := func(s breaker.State) bool { return slices.Contains(overrides, s) }
	switch {
	case c.From == c.To:
		return c.From == breaker.Shadow && (c.Origin() == "calls" || c.Origin() == "clock" && halfOpenTimeout)
	case forced(c.From) || forced(c.To):
		return c.Origin() == "hand"
	case c.From == breaker.Open && c.To == breaker.HalfOpen:
		return c.Origin() == "clock"
	case c.To == breaker.Open:
		return c.Origin() == "calls" || c.Origin() == "hand" ||
			c.Origin() == "clock" && c.From == breaker.HalfOpen && halfOpenTimeout
	case c.From == breaker.HalfOpen && c.To == breaker.Recovering:
		return c.Origin() == "calls"
	case (c.From == breaker.HalfOpen || c.From == breaker.Recovering) && c.To == breaker.Closed:
		return c.Origin() == "calls" || c.Origin() == "hand"
	}
	return c.From == breaker.Open && c.To == breaker.Closed && c.Origin() == "hand"
}

func TestModelLegalAllowsTheClockToReopenOnlyWithAHalfOpenTimeout(t *testing.T) {
	for _, c := range []breaker.Change{
		{From: breaker.HalfOpen, To: breaker.Open}, {From: breaker.Shadow, To: breaker.Shadow},
	} {
		require.True(t, modelIsLegal(c.WithOrigin("clock"), true), "%v", c)
		require.False(t, modelIsLegal(c.WithOrigin("clock"), false), "%v", c)
		require.True(t, modelIsLegal(c.WithOrigin("calls"), false), "%v", c)
	}
}

// modelReader checks that what a breaker shows is sound at any moment.
func modelReader(t *testing.T, b *breaker.Breaker) func(*rand.Rand) {
	var last window.Totals
	return func(*rand.Rand) {
		s, now := b.StatsNow(), b.Totals()
		for _, c := range []window.Counts{s.Counts, window.Counts(s.Totals), window.Counts(now)} {
			if !modelIsSound(c) {
				t.Errorf("unsound counts: %+v", c)
			}
		}
		if now.Successes < last.Successes || now.Failures < last.Failures || now.Ignored < last.Ignored ||
			now.Refused < last.Refused || now.Slow < last.Slow {
			t.Errorf("totals went down from %+v to %+v", last, now)
		}
		if !slices.Contains(states, s.State) {
			t.Errorf("in no state: %v", s.State)
		}
		last = now
	}
}

// modelIsSound reports whether counts can be those of any calls.
func modelIsSound(c window.Counts) bool {
	return min(c.Successes, c.Failures, c.Ignored, c.Refused, c.SlowFailures) >= 0 &&
		c.Slow <= c.Calls() && c.SlowFailures <= min(c.Slow, c.Failures)
}
