package alert_test

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/window"
)

// timedSource is a source of latencies that stores the time of each call.
type timedSource struct {
	*window.Calls
	start time.Time
	at    []time.Duration
	took  []time.Duration
}

func newTimedSource() *timedSource {
	start := time.Now()
	return &timedSource{Calls: window.NewCallsAt(window.CallsConfig{Latency: true}, start), start: start}
}

func (c *timedSource) record(at, took time.Duration) {
	c.RecordAt(c.start.Add(at), window.Success, took)
	c.at, c.took = append(c.at, at), append(c.took, took)
}

func TestQuantileOverItsOwnSpan(t *testing.T) {
	calls := newTimedSource()
	calls.record(0, time.Hour) // history
	v := newValueReader(alert.Quantile(calls, 0.5, 2*time.Minute))
	near := func(at, want time.Duration) {
		t.Helper()
		got, ok := v.at(at)
		require.True(t, ok, "data at %v", at)
		require.InEpsilon(t, want.Seconds(), got, 0.09, "at %v", at)
	}
	v.requireNone(t, 0)
	calls.record(0, time.Second)
	near(5*s, time.Second)
	for range 9 {
		calls.record(0, 100*time.Millisecond)
	}
	near(60*s, 100*time.Millisecond)
	near(119*s, 100*time.Millisecond)
	calls.record(0, 3*time.Second)
	// the first call has left the window, the nine others have not
	near(121*s, 100*time.Millisecond)
	near(180*s, 3*time.Second)
	near(239*s, 3*time.Second)
	v.requireNone(t, 250*s)
	calls.record(0, 2*time.Second)
	near(10*time.Hour, 2*time.Second) // also after hours without evaluations
	v.requireNone(t, 20*time.Hour)
}

// The calls counted in the window equal the recorded calls within its bounds.
func TestQuantileCountsTheCallsOfItsSpan(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	calls := newTimedSource()
	const span, part = 120 * s, 10 * s
	var counted int64
	m := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "x", Value: alert.Quantile(calls, 0.5, span), When: alert.Above(0), NoData: alert.Resolve,
	})
	m.Evaluate(calls.start)
	var sampled []time.Duration // when each call was first seen
	var at time.Duration
	for range 2000 {
		at += time.Duration(random.IntN(15000)) * time.Millisecond
		if random.IntN(50) == 0 {
			at += time.Duration(random.IntN(300)) * s
		}
		for range random.IntN(4) {
			calls.record(at, time.Second)
			sampled = append(sampled, at)
		}
		m.Evaluate(calls.start.Add(at))
		counted = 0
		for _, a := range m.Alerts() {
			if a.State == alert.Firing {
				counted = a.Calls
			}
		}
		var want int64
		for _, seen := range sampled {
			if seen/part > at/part-12 {
				want++
			}
		}
		require.Equal(t, want, counted, "at %v", at)
	}
}

func TestQuantileOfAMemberBeginsAtItsFirstEvaluation(t *testing.T) {
	hosts := map[string]*timedSource{}
	m := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "slow", When: alert.Above(1),
		Value: alert.Each(maps.All(hosts), func(c *timedSource) alert.Value { return alert.Quantile(c, 0.99, time.Minute) }),
	})
	m.Evaluate(time.Now())
	hosts["a"] = newTimedSource()
	hosts["a"].record(0, time.Hour) // history
	m.Evaluate(time.Now())
	require.Empty(t, m.Alerts())
	hosts["a"].record(0, 2*time.Second)
	m.Evaluate(time.Now())
	require.Equal(t, alert.Firing, m.Alerts()[0].State)
	require.InEpsilon(t, 2, m.Alerts()[0].Value, 0.09)
}

// fixedLatency is a source with a histogram that a test sets.
type fixedLatency struct{ window.Latency }

func (f *fixedLatency) LifetimeLatency() window.Latency { return f.Latency }

func histogram(fast, slow int) window.Latency {
	var times latency.Histogram
	for range fast {
		times.Record(time.Millisecond)
	}
	for range slow {
		times.Record(2 * time.Second)
	}
	return window.Latency(times.Snapshot())
}

// After a reset, a source may have more slow calls than before, and fewer fast calls.
func TestQuantileOfASourceThatWasReset(t *testing.T) {
	source := &fixedLatency{histogram(1000, 5)}
	v := newValueReader(alert.Quantile(source, 0.5, 5*time.Minute))
	v.requireNone(t, 0)
	source.Latency = histogram(500, 50)
	got, ok := v.at(5 * s)
	require.True(t, ok)
	require.InEpsilon(t, 0.001, got, 0.09, "most of its 550 calls are fast")
	source.Latency = histogram(500, 2000)
	got, _ = v.at(10 * s)
	require.InEpsilon(t, 2, got, 0.09, "550 fast calls and 1950 slow ones")
}

func ExampleQuantile() {
	calls := window.NewCalls(window.CallsConfig{Latency: true})
	rule := alert.Rule{Name: "slow", Value: alert.Quantile(calls, 0.99, 5*time.Minute), When: alert.Above(0.25), MinCalls: 100}
	if err := (alert.Config{}).Validate(rule); err != nil {
		panic(err)
	}
	// Output:
}
