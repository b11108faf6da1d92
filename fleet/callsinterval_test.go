package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

// slowFlushes has an interval that is longer than a round trip, even on a busy machine.
var slowFlushes = fleet.CallsConfig{Span: time.Minute, Buckets: 60, Interval: 2 * time.Second}

// withinAnInterval waits for a condition. It fails the test if that takes longer than 1.2 intervals
// of slowFlushes plus all stalls of the machine.
func withinAnInterval(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	stood := time.Duration(0)
	for last := began; !holds(); {
		<-tick.C
		now := time.Now()
		if stall := now.Sub(last); stall > 10*time.Millisecond {
			stood += stall
		}
		last = now
		require.LessOrEqual(t, now.Sub(began), slowFlushes.Interval*6/5+stood)
	}
	t.Logf("took %v, with stalls of %v", time.Since(began).Round(time.Millisecond), stood.Round(time.Millisecond))
}

func TestEveryNodeKnowsOfACallWithinAnInterval(t *testing.T) {
	t.Parallel()
	l := connect(t)
	nodes := []member{join(t, l, slowFlushes), join(t, l, slowFlushes), join(t, l, slowFlushes)}
	for _, n := range nodes {
		requireSoon(t, func() bool { return n.Flushes() > 0 })
	}
	for round := range int64(4) {
		// each begins at a different point between two flushes
		<-time.After(time.Duration(round) * slowFlushes.Interval / 8)
		for _, n := range nodes {
			n.record(window.Failure, 1)
		}
		withinAnInterval(t, func() bool {
			for _, n := range nodes {
				if n.Counts() != failedCounts(3*(round+1)) {
					return false
				}
			}
			return true
		})
	}
}

func TestBreakersOfAllNodesOpenAfterAnInterval(t *testing.T) {
	t.Parallel()
	l := connect(t)
	var nodes []*caller
	for range 3 {
		shared := newCalls(l, nameOfTest(t), slowFlushes)
		n := &caller{guard: breaker.New("payments", breaker.Config{MinCalls: 30, SharedCounts: shared.Counts})}
		shared.Follow(n.guard)
		n.member = runMember(t, shared)
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		requireSoon(t, func() bool { return n.Flushes() > 0 })
	}
	for _, n := range nodes {
		for range 12 { // fewer than MinCalls, which is 30
			n.call(errors.New("down"))
		}
		require.Equal(t, breaker.Closed, n.guard.State())
	}
	withinAnInterval(t, func() bool {
		for _, n := range nodes {
			if n.Counts() != failedCounts(36) {
				return false
			}
		}
		return true
	})
	for _, n := range nodes {
		require.Equal(t, breaker.Closed, n.guard.State(), "a breaker reads shared counts only after calls of its own")
		n.call(errors.New("down"))
		require.Equal(t, breaker.Open, n.guard.State())
	}
}
