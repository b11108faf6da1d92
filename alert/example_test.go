package alert_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// newPlainLogger returns a logger without times, so that the output is the same each time.
func newPlainLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "weir.alert.starts_at", "weir.alert.ends_at", "weir.alert.id":
			return slog.Attr{}
		}
		return a
	}}))
}

func ExampleMonitor() {
	users := breaker.New("users-api", breaker.Config{MinCalls: 1})
	told := make(chan struct{})
	page := alert.Func("pager", func(_ context.Context, a alert.Alert) error {
		fmt.Println(a.Rule, a.State)
		close(told)
		return nil
	})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{page}},
		alert.Rule{Name: "users-api open", Value: alert.Bool(users.Tripped), When: alert.Above(0)})

	ctx := context.Background()
	_ = users.Run(ctx, func(context.Context) error { return errors.New("down") })
	running, stop := context.WithCancel(ctx)
	go monitor.Run(running)
	<-told

	// At the end of the program: stop, then deliver what has not been delivered.
	stop()
	ending, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	fmt.Println(monitor.Flush(ending))
	// Output:
	// users-api open firing
	// <nil>
}

func ExampleRule() {
	payments := window.NewCalls(window.CallsConfig{})
	monitor := alert.NewMonitor(
		alert.Config{Notify: []alert.Notifier{alert.Log(newPlainLogger())}},
		alert.Rule{
			Name:     "payments errors",
			Value:    alert.FailureRate(payments, 5*time.Minute),
			When:     alert.Above(0.05),
			Resolve:  alert.Below(0.02),
			MinCalls: 20,
			For:      30 * time.Second,
			Severity: "page",
			Describe: func(a alert.Alert) string { return fmt.Sprintf("%.0f%% of payments fail", 100*a.Value) },
		})

	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	monitor.Evaluate(noon)
	for range 100 {
		payments.Record(window.Failure, time.Millisecond)
	}
	monitor.Evaluate(noon.Add(5 * time.Second))
	monitor.Evaluate(noon.Add(35 * time.Second))
	if err := monitor.Flush(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=WARN msg="alert firing" weir.alert.rule="payments errors" weir.alert.summary="100% of payments fail" weir.alert.value=1 weir.alert.severity=page
}

func ExampleConfig() {
	err := alert.Config{Interval: -time.Second}.Validate()
	fmt.Println(err)
	// Output:
	// alert: Interval is -1s, must be at least 0
}

func ExampleNoData() {
	at, there := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), true
	load := alert.Gauge(func() float64 {
		if !there {
			return math.NaN() // no data
		}
		return 0.9
	})
	monitor := alert.NewMonitor(alert.Config{},
		alert.Rule{Name: "overloaded", Value: load, When: alert.Above(0.8)}, // KeepLast
		alert.Rule{Name: "overloaded, as known", Value: load, When: alert.Above(0.8), NoData: alert.Resolve})
	monitor.Evaluate(at)
	there = false
	monitor.Evaluate(at.Add(5 * time.Second))
	for _, a := range monitor.Alerts() {
		fmt.Println(a.Rule, a.State)
	}
	// Output:
	// overloaded firing
	// overloaded, as known resolved
}

func ExampleState() {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "queue", Value: alert.Gauge(func() float64 { return 12 }), When: alert.Above(10), For: 10 * time.Second,
	})
	for range 3 {
		monitor.Evaluate(at)
		fmt.Println(monitor.Alerts()[0].State)
		at = at.Add(5 * time.Second)
	}
	// Output:
	// pending
	// pending
	// firing
}

func ExampleCondition() {
	bad := alert.Above(0.05)
	fmt.Println(bad, bad.Holds(0.05), bad.Holds(0.06))
	// Output:
	// above 0.05 false true
}

func ExampleValue() {
	var queue []string
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "queue is long", Value: alert.Gauge(func() float64 { return float64(len(queue)) }), When: alert.Above(2),
	})
	queue = append(queue, "a", "b", "c")
	monitor.Evaluate(time.Now())
	fmt.Println(monitor.Alerts()[0])
	// Output:
	// queue is long: firing: gauge is 3, alerts above 2
}

func ExampleAlert() {
	monitor := alert.NewMonitor(alert.Config{Instance: "-"}, alert.Rule{
		Name: "disk", Value: alert.Gauge(func() float64 { return 0.97 }), When: alert.Above(0.9), For: time.Hour,
	})
	monitor.Evaluate(time.Now())
	for _, a := range monitor.Alerts() {
		fmt.Println(a.Rule, a.State, a.Value, a.ID)
	}
	// Output:
	// disk pending 0.97 2c8671a66ac1055b
}

// jobSource is a source that counts its own calls.
type jobSource struct{ done, failed int64 }

func (j *jobSource) Totals() window.Totals {
	return window.Totals{Successes: j.done, Failures: j.failed}
}

func ExampleCounted() {
	night := &jobSource{}
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "night jobs", Value: alert.FailureRate(night, 24*time.Hour), When: alert.Above(0.1),
	})
	monitor.Evaluate(time.Now())
	night.done, night.failed = 6, 2
	monitor.Evaluate(time.Now())
	fmt.Println(monitor.Alerts()[0])
	// Output:
	// night jobs: firing: failure rate over 24h is 0.25, alerts above 0.1
}

func ExampleEach() {
	hosts := map[string]*jobSource{"a.example": {}, "b.example": {}}
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "host errors", When: alert.Above(0.5),
		Value: alert.Each(maps.All(hosts), func(host *jobSource) alert.Value { return alert.FailureRate(host, time.Minute) }),
	})
	monitor.Evaluate(time.Now())
	hosts["b.example"].failed = 10
	monitor.Evaluate(time.Now())
	fmt.Println(monitor.Alerts()[0].Key, monitor.Alerts()[0].State)
	// Output:
	// b.example firing
}

// One rule watches the gates of all hosts. The groups of other packages have the method All too.
func ExampleEach_group() {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "host is down", When: alert.Above(0),
		Value: alert.Each(hosts.All(), func(host *weir.Gate) alert.Value { return alert.Bool(host.Tripped) }),
	})
	hosts.Get("a.example")
	hosts.Get("b.example").Breaker().Force(breaker.ForcedOpen, "")
	monitor.Evaluate(time.Now())
	for _, a := range monitor.Alerts() {
		fmt.Println(a)
	}
	// Output:
	// host is down (b.example): firing: boolean is 1, alerts above 0
}

// One rule watches how much of a limit each user has left.
func ExampleEach_limiter() {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(10, time.Hour), Burst: 10})
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "user has used up the limit", When: alert.Below(1),
		Value: alert.Each(users.All(), func(user limiter.Keyed[string]) alert.Value {
			return alert.Gauge(func() float64 { return float64(user.Take(0).Remaining) })
		}),
	})
	users.Get("ada").Take(1)
	users.Get("bob").Take(10)
	monitor.Evaluate(time.Now())
	for _, a := range monitor.Alerts() {
		fmt.Println(a.Rule, a.Key)
	}
	// Output:
	// user has used up the limit bob
}

func ExampleBurnRateRules() {
	payments := &jobSource{}
	rules := alert.BurnRateRules("payments", payments, 0.999)
	for _, rule := range rules {
		fmt.Println(rule.Name, rule.Severity, rule.When)
	}
	monitor := alert.NewMonitor(alert.Config{}, rules...)
	_ = monitor
	// Output:
	// payments burn 14.4x page above 14.4
	// payments burn 6x page above 6
}

func (userNotifier) Name() string { return "pager" }

func (userNotifier) Notify(_ context.Context, a alert.Alert) error {
	fmt.Println("page:", a)
	return nil
}

func (digestNotifier) NotifyAll(_ context.Context, alerts []alert.Alert) error {
	fmt.Println(len(alerts), "alerts")
	return nil
}

func (digestNotifier) Repeat() time.Duration { return time.Hour }
