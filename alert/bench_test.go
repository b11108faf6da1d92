package alert_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func BenchmarkEvaluate(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			var rules []alert.Rule
			calls := &totals{}
			for i := range n {
				rules = append(rules, alert.Rule{Name: fmt.Sprint(i), Value: alert.FailureRate(calls, 5*time.Minute), When: alert.Above(0.5)})
			}
			monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{alert.Log(discardLogger())}}, rules...)
			at := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(5 * time.Second)
				calls.Successes++
				monitor.Evaluate(at)
			}
		})
	}
}

// BenchmarkDelivery delivers a hundred alerts, one by one, with a state file that has this many.
// Most of the time is the wait until each record is durable.
func BenchmarkDelivery(b *testing.B) {
	const changing = 100
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("alerts=%d", n), func(b *testing.B) {
			bad, rules := true, []alert.Rule(nil)
			for i := range n {
				value := alert.Bool(func() bool { return bad || i >= changing })
				rules = append(rules, alert.Rule{Name: fmt.Sprint(i), Value: value, When: alert.Above(0)})
			}
			c := alert.Config{
				Notify: []alert.Notifier{batches{}}, Logger: discardLogger(),
				StateFile: filepath.Join(b.TempDir(), "alerts"), Instance: "a",
			}
			monitor, at := alert.NewMonitor(c, rules...), time.Now()
			defer monitor.Kill()
			monitor.Evaluate(at)
			require.NoError(b, monitor.Flush(b.Context()))
			c.Notify = []alert.Notifier{alert.Func("receiver", func(context.Context, alert.Alert) error { return nil })}
			require.NoError(b, monitor.Reconfigure(c, rules...))
			for b.Loop() {
				b.StopTimer()
				bad, at = !bad, at.Add(5*time.Second)
				monitor.Evaluate(at)
				b.StartTimer()
				require.NoError(b, monitor.Flush(b.Context()))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*changing), "ns/delivery")
		})
	}
}

// batches is a receiver that takes many alerts at once.
type batches struct{}

func (batches) Name() string                                   { return "receiver" }
func (batches) Notify(context.Context, alert.Alert) error      { return nil }
func (batches) NotifyAll(context.Context, []alert.Alert) error { return nil }
