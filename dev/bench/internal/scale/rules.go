package scale

import (
	"strconv"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/dev/bench/internal/fit"
	"github.com/weir-go/weir/window"
)

// rules varies the number of rules of a monitor.
func (t timer) rules() Experiment {
	return Experiment{
		File: "rules", Title: "One evaluation of n alert rules", X: "rules", Y: "ns per evaluation", Sizes: powersOfTen(1, 10_000),
		Lines: []Line{{Name: "Monitor.Evaluate", Says: fit.Linear, Cost: t.evaluate}},
		Why:   "Each rule samples its source and reads its span with one subtraction, so an evaluation has a constant cost per rule, whatever the spans are.",
	}
}

func (t timer) evaluate(rules int) (float64, error) {
	calls := window.NewCalls(window.CallsConfig{})
	var all []alert.Rule
	for i := range rules {
		all = append(all, alert.Rule{Name: strconv.Itoa(i), Value: alert.FailureRate(calls, 5*time.Minute), When: alert.Above(0.5)})
	}
	monitor, at := alert.NewMonitor(alert.Config{}, all...), time.Now()
	return t.quickest(func(n int) int {
		for range n {
			at = at.Add(5 * time.Second)
			calls.Record(window.Success, 0)
			monitor.Evaluate(at)
		}
		return n - len(monitor.Alerts())
	})
}
