package throttle_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// useCallbacks makes a throttle whose callbacks call in with their names, and uses it in a way that
// calls each of them.
func useCallbacks(in func(callback string, use func())) {
	var throttled *throttle.Throttle
	var c throttle.Config
	call := func(callback string) { in(callback, func() { useThrottle(throttled, c) }) }
	c.Classify = func(error) window.Outcome { call("Classify"); return window.Failure }
	throttled = throttle.New("t", c)
	_ = throttled.Run(bg(), fail)
	throttled.Observe(func(*stat.Series, float64) bool { call("yield"); return true })
}

// useThrottle calls every method.
func useThrottle(t *throttle.Throttle, c throttle.Config) {
	for range 100 { // some are refused
		_ = t.Run(bg(), fail)
	}
	if permit, err := t.Allow(); err == nil {
		permit.Done(bg(), errDown)
	}
	if permit, err := t.Allow(); err == nil {
		permit.Record(window.Success)
	}
	_ = t.Totals()
	_ = metricsOf(t)
	c.MinCalls++
	_ = t.Reconfigure(c)
}

func TestCallbacksMayCallTheThrottle(t *testing.T) {
	for _, active := range []string{"Classify", "yield"} {
		inside, seen := false, 0
		useCallbacks(func(callback string, use func()) {
			if callback != active || inside {
				return
			}
			inside = true
			use()
			inside = false
			seen++
		})
		require.Positive(t, seen, active)
	}
}

func TestASlowCallbackDelaysNoOtherCall(t *testing.T) {
	for _, active := range []string{"Classify", "yield"} {
		synctest.Test(t, func(*testing.T) {
			var began atomic.Bool
			end, uses := make(chan struct{}), make(chan func(), 1)
			go useCallbacks(func(callback string, use func()) {
				if callback == active && began.CompareAndSwap(false, true) {
					uses <- use
					<-end
				}
			})
			(<-uses)()
			close(end)
		})
	}
}
