package window_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// The yields of a counter and a window may call every method, also when these move the window on,
// and so may others while a yield blocks.
func TestYieldsMayCallEverythingAndDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := window.NewCounter(window.Config{})
		calls := window.NewCalls(window.CallsConfig{Name: "calls", Latency: true})
		useCounter := func() {
			time.Sleep(time.Second)
			counter.Add(1)
			_, _, _ = counter.Sum(), counter.Rate(), counter.Total()
			for range counter.Buckets() {
			}
		}
		useCalls := func() {
			time.Sleep(time.Second)
			calls.Record(window.Failure, time.Second)
			calls.Refuse()
			_, _, _, _ = calls.Counts(), calls.Latency(), calls.LifetimeLatency(), calls.Totals()
			calls.Observe(func(*stat.Series, float64) bool { return true })
		}
		useCounter()
		useCalls()
		for name, c := range map[string]struct {
			iterate func(yield func())
			use     func()
		}{
			"Buckets": {func(yield func()) {
				for range counter.Buckets() {
					yield()
				}
			}, useCounter},
			"Observe": {func(yield func()) {
				for range calls.Observe {
					yield()
				}
			}, useCalls},
		} {
			seen := 0
			c.iterate(func() { seen++; c.use() })
			require.Positive(t, seen, name)
			began, end := make(chan struct{}, 100), make(chan struct{})
			go c.iterate(func() { began <- struct{}{}; <-end })
			<-began
			c.use()
			close(end)
			synctest.Wait()
		}
	})
}
