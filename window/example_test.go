package window_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/window"
)

func Example() {
	logins := window.NewCounter(window.Config{Span: time.Minute})
	logins.Add(2)
	fmt.Println(logins.Sum(), "logins in the last minute")

	jobs := window.NewCalls(window.CallsConfig{Span: time.Minute, Slow: time.Second})
	jobs.Record(window.Success, 20*time.Millisecond)
	jobs.Record(window.Failure, 3*time.Second)
	now := jobs.Counts()
	fmt.Printf("%d jobs, %.0f%% failed, %.0f%% slow\n", now.Calls(), 100*now.FailureRate(), 100*now.SlowRate())
	// Output:
	// 2 logins in the last minute
	// 2 jobs, 50% failed, 50% slow
}

func ExampleCounter() {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	logins := window.NewCounterAt(window.Config{Span: time.Minute, Buckets: 6}, start)
	logins.AddAt(start, 3)
	logins.AddAt(start.Add(30*time.Second), 2)
	for _, s := range []int{30, 59, 60, 90} {
		fmt.Printf("%d s: %d in the last minute\n", s, logins.SumAt(start.Add(time.Duration(s)*time.Second)))
	}
	fmt.Println("in all:", logins.Total())
	// Output:
	// 30 s: 5 in the last minute
	// 59 s: 5 in the last minute
	// 60 s: 2 in the last minute
	// 90 s: 0 in the last minute
	// in all: 5
}

func ExampleCalls() {
	calls := window.NewCalls(window.CallsConfig{Span: 10 * time.Second, Slow: time.Second})
	calls.Record(window.Success, 20*time.Millisecond)
	calls.Record(window.Failure, 3*time.Second)
	c := calls.Counts()
	fmt.Printf("%d calls, %.0f%% failed, %.0f%% slow\n", c.Calls(), 100*c.FailureRate(), 100*c.SlowRate())
	// Output: 2 calls, 50% failed, 50% slow
}

func ExampleView() {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lastHour := window.NewViewAt(window.Config{Span: time.Hour, Buckets: 60}, start)
	totals := window.Totals{Successes: 9000, Failures: 12}
	lastHour.SampleAt(start, totals)
	totals.Failures += 5
	lastHour.SampleAt(start.Add(15*time.Minute), totals)
	now := start.Add(15 * time.Minute)
	fmt.Printf("%d failures since the first sample\n", lastHour.CountsAt(now).Failures)
	// Output: 5 failures since the first sample
}

func ExampleEdge() {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, edge := range []window.Edge{window.Recent, window.Strict, window.Interpolated} {
		c := window.NewCounterAt(window.Config{Span: 10 * time.Second, Edge: edge}, start)
		c.AddAt(start, 100)
		fmt.Println(edge, c.SumAt(start.Add(10*time.Second+300*time.Millisecond)))
	}
	// Output:
	// recent 0
	// strict 100
	// interpolated 70
}

func ExampleConfig_Validate() {
	fmt.Println(window.Config{Span: 48 * time.Hour}.Validate())
	// Output: window: Buckets is 10, must be at least 48 for a Span of 48h0m0s: each bucket is at most 1h0m0s long
}

func ExampleCounts() {
	c := window.Counts{Successes: 57, Failures: 43}
	fmt.Println(c.Calls(), c.FailureRate())
	// Output: 100 0.43
}

func ExampleLatency() {
	calls := window.NewCalls(window.CallsConfig{Latency: true})
	for ms := range 100 {
		calls.Record(window.Success, time.Duration(ms+1)*time.Millisecond)
	}
	l := calls.Latency()
	fmt.Println(l.Count(), l.Mean(), l.Max)
	fmt.Println("p50", l.Quantile(0.5).Round(time.Millisecond))
	// Output:
	// 100 50.5ms 100ms
	// p50 50ms
}

func ExampleOutcome() {
	fmt.Println(window.Success, window.Failure, window.Ignored)
	// Output: success failure ignored
}

func ExampleCalls_Observe() {
	jobs := window.NewCalls(window.CallsConfig{Name: "jobs", Span: time.Minute})
	jobs.Record(window.Failure, 0)
	jobs.Record(window.Success, 0)
	for s, v := range jobs.Observe { // as an exporter does
		if s.Instrument.Name == "weir.window.error_ratio" {
			fmt.Println(s.Instrument.Name, s.Values, v)
		}
	}
	// Output: weir.window.error_ratio [jobs] 0.5
}

func ExampleCallsConfig() {
	calls := window.NewCalls(window.CallsConfig{Last: 100, Slow: time.Second})
	calls.Record(window.Success, 1500*time.Millisecond)
	calls.Record(window.Failure, 20*time.Millisecond)
	fmt.Printf("%+v\n", calls.Counts())
	// Output: {Successes:1 Failures:1 Slow:1 SlowFailures:0 Ignored:0 Refused:0 ConsecutiveFailures:1}
}

// The calls between two readings are the difference of the totals.
func ExampleTotals() {
	calls := window.NewCalls(window.CallsConfig{})
	calls.Record(window.Success, 0)
	before := calls.Totals()
	calls.Record(window.Failure, 0)
	calls.Record(window.Failure, 0)
	fmt.Println(calls.Totals().Minus(before).Failures)
	// Output: 2
}
