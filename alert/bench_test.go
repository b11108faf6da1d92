package alert_test

import (
	"fmt"
	"testing"
	"time"

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
