package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
)

// caller makes calls through a breaker with shared counts.
type caller struct {
	member
	guard   *breaker.Breaker
	changes chan breaker.Change
}

func newCaller(t *testing.T, forgets bool) *caller {
	shared := newCalls(connect(t), nameOfTest(t), fleet.CallsConfig{Interval: 50 * time.Millisecond})
	c := &caller{changes: make(chan breaker.Change, 100)}
	c.guard = breaker.New("payments", breaker.Config{
		MinCalls: 30, Cooldown: 200 * time.Millisecond, Recovery: breaker.Off, FailureRun: breaker.Off, SharedCounts: shared.Counts,
		OnChange: func(change breaker.Change) {
			if forgets {
				shared.Forget()
			}
			c.changes <- change
		},
	})
	shared.Follow(c.guard)
	c.member = runMember(t, shared)
	return c
}

func (c *caller) call(err error) {
	_ = c.guard.Run(context.Background(), func(context.Context) error { return err })
}

func TestABreakerTripsOnWhatTheFleetHasCounted(t *testing.T) {
	nodes := []*caller{newCaller(t, true), newCaller(t, true), newCaller(t, true)}
	for _, n := range nodes {
		requireSoon(t, func() bool { return n.Flushes() > 0 })
	}
	for _, n := range nodes {
		for range 12 { // fewer than MinCalls, which is 30
			n.call(errors.New("down"))
		}
	}
	began := time.Now()
	for i, n := range nodes {
		requireSoon(t, func() bool { return n.Counts().Failures == 36 })
		t.Logf("node %d knows after %v", i, time.Since(began).Round(time.Millisecond))
		require.Equal(t, breaker.Closed, n.guard.State())
		n.call(nil)
		require.Equal(t, breaker.Open, n.guard.State())
		change := <-n.changes
		require.Contains(t, change.Reason, ", by shared counts")
		require.Equal(t, int64(13), change.Counts.Calls(), "its own")
	}
}

func TestABreakerThatHasClosedForgetsWithItsFleet(t *testing.T) {
	for forgets, opens := range map[bool]bool{true: false, false: true} {
		n := newCaller(t, forgets)
		for range 30 {
			n.call(errors.New("down"))
		}
		require.Equal(t, breaker.Open, n.guard.State())
		requireSoon(t, func() bool { n.call(nil); return n.guard.State() == breaker.Closed })
		again := false
		for end := time.Now().Add(4 * 50 * time.Millisecond); ; waitFor(time.Millisecond) {
			n.call(nil)
			again = again || n.guard.State() == breaker.Open
			if time.Now().After(end) {
				break
			}
		}
		require.Equal(t, opens, again, "forgets: %v", forgets)
		require.Equal(t, int64(30), n.Totals().Failures)
		n.stop()
		sharedServer().Do("DEL", keyOf(t))
	}
}
