package window_test

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// TestPackageVariablesInABubble uses windows that were made on the real clock in a bubble whose
// clock begins in the year 2000.
func TestPackageVariablesInABubble(t *testing.T) {
	counter := window.NewCounter(window.Config{Span: time.Minute, Buckets: 6, Edge: window.Interpolated})
	calls := window.NewCalls(window.CallsConfig{Name: "queue", Span: time.Minute, Buckets: 6, Latency: true})
	last := window.NewCalls(window.CallsConfig{Last: 2})
	view := window.NewView(window.Config{Span: time.Minute, Buckets: 6})
	synctest.Test(t, func(t *testing.T) {
		require.Zero(t, counter.Sum(), "a reading may come first")
		require.Zero(t, calls.Counts().Calls()+calls.Latency().Count()+view.Counts().Calls())
		for range calls.Observe {
		}
		view.Sample(calls.Totals())
		for range 3 {
			counter.Add(1)
			calls.Record(window.Failure, time.Second)
			last.Record(window.Failure, 0)
		}
		view.Sample(calls.Totals())
		seen := []int64{counter.Sum(), calls.Counts().Failures, calls.Latency().Count(), view.Counts().Failures, last.Counts().Failures}
		require.Equal(t, []int64{3, 3, 3, 3, 2}, seen)
		time.Sleep(30 * time.Second)
		counter.Add(1)
		time.Sleep(35 * time.Second)
		require.Equal(t, int64(3), counter.Sum(), "half of the oldest bucket, and one more")
		require.Zero(t, calls.Counts().Failures+calls.Latency().Count()+view.Counts().Failures)
		require.Zero(t, calls.Late())
		first, n := time.Time{}, 0
		for at := range counter.Buckets() {
			if n++; n == 1 {
				first = at
			}
		}
		require.Equal(t, 2000, first.Year())
	})
	require.Zero(t, counter.Sum(), "on the real clock again")
	counter.Add(5)
	calls.Record(window.Success, 0)
	require.Equal(t, int64(5), counter.Sum())
	require.Equal(t, int64(1), calls.Counts().Calls())
}

// TestTimesBeyond146YearsAreEqual uses the limit of offsets: all later times count as the same
// moment.
func TestTimesBeyond146YearsAreEqual(t *testing.T) {
	const year = 365 * 24 * time.Hour
	c := window.NewCounterAt(window.Config{Span: time.Minute}, t0.Add(146*year))
	for _, at := range []time.Time{t0, t0.Add(2 * time.Minute), t0.Add(145 * year), t0.Add(146 * year)} {
		c.AddAt(at, 1)
		require.Equal(t, int64(1), c.SumAt(at), at)
	}
	c.AddAt(t0.Add(147*year), 1)
	require.Equal(t, int64(1), c.SumAt(t0.Add(290*year)))
}

// TestWindowsAtExtremeTimes uses the zero time and times beyond the limit of offsets.
func TestWindowsAtExtremeTimes(t *testing.T) {
	far := t0.AddDate(1000, 0, 0)
	for name, c := range map[string]struct{ made, first time.Time }{
		"made at the zero time":          {time.Time{}, t0},
		"used in another millennium":     {t0, far},
		"made long before, used earlier": {time.Time{}, time.Time{}},
		"made now, used 26 years ago":    {t0, t0.AddDate(-26, 0, 0)},
		"made now":                       {t0, t0},
	} {
		counter := window.NewCounterAt(window.Config{Span: time.Minute}, c.made)
		calls := window.NewCallsAt(window.CallsConfig{Span: time.Minute, Latency: true}, c.made)
		view := window.NewViewAt(window.Config{Span: time.Minute}, c.made)
		view.SampleAt(c.first, window.Totals{})
		for i := range 5 {
			now := c.first.Add(time.Duration(i) * 2 * time.Minute)
			counter.AddAt(now, 1)
			calls.RecordAt(now, window.Failure, time.Second)
			view.SampleAt(now, calls.Totals())
			require.Equal(t, int64(1), counter.SumAt(now), "%s, %d", name, i)
			require.Equal(t, int64(1), calls.CountsAt(now).Failures, "%s, %d", name, i)
			require.Equal(t, int64(1), calls.LatencyAt(now).Count(), "%s, %d", name, i)
			require.Equal(t, int64(1), view.CountsAt(now).Failures, "%s, %d", name, i)
		}
		now := c.first.Add(9 * time.Minute)
		require.Zero(t, counter.SumAt(now)+calls.CountsAt(now).Calls()+view.CountsAt(now).Calls(), name)
	}
}

func TestTheZeroTimeDoesNotBeginAWindow(t *testing.T) {
	counter := window.NewCounterAt(window.Config{Span: time.Minute}, t0)
	calls := window.NewCallsAt(window.CallsConfig{Span: time.Minute}, t0)
	for range 2 {
		counter.AddAt(time.Time{}, 1)
		calls.RecordAt(time.Time{}, window.Failure, 0)
		counter.AddAt(t0.Add(30*time.Second), 1)
		calls.RecordAt(t0.Add(30*time.Second), window.Failure, 0)
	}
	require.Equal(t, int64(4), counter.SumAt(t0.Add(30*time.Second)))
	require.Equal(t, int64(4), calls.CountsAt(t0.Add(30*time.Second)).Failures)
	require.Equal(t, int64(4), counter.SumAt(time.Time{}), "at a stale time")
	require.Zero(t, counter.SumAt(time.Unix(math.MaxInt32, 0)))
	require.Zero(t, calls.CountsAt(t0.Add(5*time.Minute)).Failures)
}

func TestConcurrentFirstCountsAreKept(t *testing.T) {
	for range 50 {
		counter := window.NewCounter(window.Config{Span: time.Minute})
		calls := window.NewCalls(window.CallsConfig{Span: time.Minute})
		synctest.Test(t, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					counter.Add(1)
					calls.Record(window.Failure, 0)
					_ = counter.Sum()
				})
			}
			wg.Wait()
			require.Equal(t, int64(8), counter.Sum())
			require.Equal(t, int64(8), calls.Counts().Failures)
		})
	}
}
