package window_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// readMetrics returns the values of a source, by instrument and second attribute.
func readMetrics(t *testing.T, s stat.Source) map[string]float64 {
	t.Helper()
	seen := map[string]float64{}
	for line, v := range s.Observe {
		key := line.Instrument.Name
		require.Equal(t, "queue", line.Values[0])
		if len(line.Values) > 1 {
			key += " " + line.Values[1]
		}
		require.NotContains(t, seen, key)
		seen[key] = v
	}
	return seen
}

func TestMetricsOfAWindowOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := window.NewCalls(window.CallsConfig{Name: "queue", Span: 10 * time.Second, Latency: true})
		require.Equal(t, map[string]float64{
			"weir.window.events success": 0, "weir.window.events failure": 0, "weir.window.events ignored": 0, "weir.window.events refused": 0,
			"weir.window.late_events": 0, "weir.window.size": 0, "weir.window.length": 10, "weir.window.coverage": 0,
		}, readMetrics(t, c), "values that do not exist are left out")

		for range 9 {
			c.Record(window.Success, 100*time.Millisecond)
		}
		c.Record(window.Failure, 400*time.Millisecond)
		c.Record(window.Ignored, 0)
		c.Refuse()
		time.Sleep(4 * time.Second)
		seen := readMetrics(t, c)
		require.InDelta(t, 0.1, seen["weir.window.latency 0.5"], 0.01)
		require.InDelta(t, 0.4, seen["weir.window.latency 0.99"], 0.04)
		for _, q := range []string{"0.5", "0.9", "0.99"} {
			delete(seen, "weir.window.latency "+q)
		}
		require.Equal(t, map[string]float64{
			"weir.window.events success": 9, "weir.window.events failure": 1, "weir.window.events ignored": 1, "weir.window.events refused": 1,
			"weir.window.late_events": 0, "weir.window.size": 10, "weir.window.error_ratio": 0.1,
			"weir.window.length": 10, "weir.window.coverage": 0.4,
		}, seen)

		time.Sleep(time.Minute)
		seen = readMetrics(t, c)
		require.InDelta(t, 1, seen["weir.window.coverage"], 0)
		require.InDelta(t, 9, seen["weir.window.events success"], 0, "totals do not age")
		require.InDelta(t, 0, seen["weir.window.size"], 0)
		require.NotContains(t, seen, "weir.window.error_ratio")
		require.NotContains(t, seen, "weir.window.latency 0.5")
	})
}

func TestMetricsOfAWindowOverCalls(t *testing.T) {
	c := window.NewCalls(window.CallsConfig{Name: "queue", Last: 4})
	c.Record(window.Failure, 0)
	require.Equal(t, map[string]float64{
		"weir.window.events success": 0, "weir.window.events failure": 1, "weir.window.events ignored": 0, "weir.window.events refused": 0,
		"weir.window.late_events": 0, "weir.window.size": 1, "weir.window.error_ratio": 1, "weir.window.coverage": 0.25,
	}, readMetrics(t, c))
	for range 5 {
		c.Record(window.Success, 0)
	}
	require.InDelta(t, 1, readMetrics(t, c)["weir.window.coverage"], 0)
	require.InDelta(t, 4, readMetrics(t, c)["weir.window.size"], 0)
}

func TestLateCallsAreCounted(t *testing.T) {
	t0 := time.Now()
	c := window.NewCallsAt(window.CallsConfig{Name: "queue", Span: 10 * time.Second}, t0)
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	c.RecordAt(at(5.5), window.Success, 0)
	c.RecordAt(at(5), window.Success, 0) // still in the newest bucket
	require.Zero(t, c.Late())
	c.RecordAt(at(4.999), window.Failure, 0)
	c.RecordAt(at(-1), window.Ignored, 0)
	require.EqualValues(t, 2, c.Late())
	require.EqualValues(t, 3, c.CountsAt(at(14.9)).Calls(), "all are in the newest bucket")
	require.InDelta(t, 2, readMetrics(t, c)["weir.window.late_events"], 0)
}

func TestAWindowWithoutANameHasNoMetrics(t *testing.T) {
	c := window.NewCalls(window.CallsConfig{})
	c.Record(window.Failure, 0)
	require.Empty(t, c.Name())
	for s := range c.Observe {
		require.Fail(t, "shown", "%v", s)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	c := window.NewCalls(window.CallsConfig{Name: "queue"})
	require.Equal(t, "queue", c.Name())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range c.Observe {
		}
	}))
}

func TestDurationsAreSummedInMicroseconds(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		want float64
	}{{-time.Hour, 0}, {499, 0}, {500, 1e-6}, {1499, 1e-6}, {1500, 2e-6}} {
		var times latency.Histogram
		times.Record(c.took)
		l := window.Latency(times.Snapshot())
		require.InDelta(t, c.want, l.Sum, 1e-12, "%v", c.took)
	}
}

func TestLatencyHistogram(t *testing.T) {
	var times latency.Histogram
	none := window.Latency(times.Snapshot())
	require.Zero(t, none.Count())
	for _, d := range []time.Duration{-1, 0, time.Millisecond, time.Second, time.Second, 2 * time.Hour} {
		times.Record(d)
	}
	l := window.Latency(times.Snapshot())
	require.EqualValues(t, 6, l.Count())
	require.EqualValues(t, 2, l.Under)
	require.EqualValues(t, 1, l.Over)
	require.Equal(t, 2*time.Hour, l.Max)
	require.InDelta(t, 0.001+1+1+4096, l.Sum, 1e-6)
	lower, upper := quantileBounds(l, 0.5)
	require.Less(t, lower, time.Second)
	require.GreaterOrEqual(t, upper, time.Millisecond)
}
