package scale

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/window"
)

// readers varies the number of objects that are read at once.
func (t timer) readers() Experiment {
	return Experiment{
		File: "readers", Title: "Reading n objects", X: "objects", Y: "ns per object", Sizes: powersOfTen(100_000),
		Lines: []Line{
			{Name: "Observe of a group, per breaker", Cost: t.observeGroup},
			{Name: "a scrape, per breaker", Upto: 10_000, Cost: t.scrape},
			{Name: "Monitor.Evaluate, per rule", Upto: 10_000, Cost: t.evaluate},
		},
		Why: "A group yields the sums over the members without series of their own. A scrape yields each series of each breaker, without what an exporter adds. " +
			"A rule samples its source and reads its span with one subtraction, whatever the span is.",
	}
}

func (t timer) observeGroup(members int) (float64, error) {
	g := breaker.NewGroup[int]("bench", breaker.GroupConfig{MaxKeys: 2*members + 1000})
	for key := range members {
		_ = g.Get(key).Run(context.Background(), succeed)
	}
	return t.observe(members, g)
}

func (t timer) scrape(sources int) (float64, error) {
	var all []stat.Source
	for i := range sources {
		all = append(all, breaker.New(strconv.Itoa(i), breaker.Config{}))
	}
	set, err := read.New(func(s *stat.Series) *stat.Series { return s }, all...)
	if err != nil {
		return 0, err
	}
	return t.quickestOf(sources, func(n int) (right int) {
		for range n {
			figures := 0
			for range set.Observe {
				figures++
			}
			if figures > sources {
				right++
			}
		}
		return right
	})
}

// observe measures the cost of reading all metrics of a source once, per object.
func (t timer) observe(objects int, source stat.Source) (float64, error) {
	return t.quickestOf(objects, func(n int) (right int) {
		for range n {
			figures := 0
			for range source.Observe {
				figures++
			}
			if figures > 0 {
				right++
			}
		}
		return right
	})
}

func (t timer) evaluate(rules int) (float64, error) {
	calls := window.NewCalls(window.CallsConfig{})
	var all []alert.Rule
	for i := range rules {
		all = append(all, alert.Rule{Name: strconv.Itoa(i), Value: alert.FailureRate(calls, 5*time.Minute), When: alert.Above(0.5)})
	}
	monitor, at := alert.NewMonitor(alert.Config{}, all...), time.Now()
	return t.quickestOf(rules, func(n int) int {
		for range n {
			at = at.Add(5 * time.Second)
			calls.Record(window.Success, 0)
			monitor.Evaluate(at)
		}
		return n - len(monitor.Alerts())
	})
}
