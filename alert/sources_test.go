package alert_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"

	"github.com/weir-go/weir/internal/testenv"
)

// countedSource has the methods of a breaker or a window that rules use.
type countedSource interface {
	Totals() window.Totals
	LifetimeLatency() window.Latency
}

// If a total fell, a rule would assume that the source was reset, and would count its whole history
// as new calls. So no total may fall from one reading to the next, while other goroutines record
// and the window is reconfigured.
func TestTotalsNeverDecrease(t *testing.T) {
	calls := testenv.Repeat(20_000, 1_000)
	windows := []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}
	config := func(i int) breaker.Config {
		return breaker.Config{Window: windows[i%len(windows)], SlowCall: time.Nanosecond, Latency: true, MinCalls: 1_000_000}
	}
	guarded := breaker.New("x", config(0))
	plain := window.NewCalls(window.CallsConfig{Span: time.Millisecond, Slow: time.Nanosecond, Latency: true})
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		writers.Go(func() {
			for i := range calls {
				if i%100 == 0 {
					_ = guarded.Reconfigure(config(i / 100))
				}
				_ = guarded.Run(t.Context(), func(context.Context) error {
					return []error{nil, errDown, context.Canceled}[i%3]
				})
				plain.Record(window.Outcome(i%3), time.Duration(i)*time.Microsecond)
				plain.Refuse()
			}
		})
	}
	for _, of := range []countedSource{guarded, plain} {
		readers.Go(func() { requireGrowth(t, of, done) })
	}
	writers.Wait()
	close(done)
	readers.Wait()
	require.EqualValues(t, 4*calls, plain.Totals().Refused)
}

func requireGrowth(t *testing.T, of countedSource, done <-chan struct{}) {
	was, took := of.Totals(), of.LifetimeLatency()
	for {
		select {
		case <-done:
			return
		default:
		}
		now, takes := of.Totals(), of.LifetimeLatency()
		if now.Successes < was.Successes || now.Failures < was.Failures || now.Slow < was.Slow ||
			now.SlowFailures < was.SlowFailures || now.Ignored < was.Ignored || now.Refused < was.Refused {
			t.Errorf("%T: totals fell from %+v to %+v", of, was, now)
			return
		}
		for i, n := range took.Counts {
			if takes.Counts[i] < n {
				t.Errorf("%T: bucket %d fell from %d to %d", of, i, n, takes.Counts[i])
				return
			}
		}
		was, took = now, takes
	}
}
