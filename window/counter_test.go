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

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// event is an addition at a time after t0.
type event struct {
	at time.Duration
	n  int64
}

// trueSum returns the sum of the events in the exact span that ends at a time.
func trueSum(events []event, at, span time.Duration) (sum int64) {
	for _, e := range events {
		if e.at > at-span && e.at <= at {
			sum += e.n
		}
	}
	return sum
}

// FuzzCounterEdges checks for any config and ascending times that Recent never counts more than the
// exact span holds, that Strict never counts less, and that Interpolated is between them.
func FuzzCounterEdges(f *testing.F) {
	f.Add(uint32(1000), uint8(10), []byte{1, 10, 2, 250, 3, 99, 1, 1})
	f.Add(uint32(60_000), uint8(6), []byte{5, 200, 5, 200, 5, 255})
	f.Add(uint32(930), uint8(10), []byte{48, 0, 48, 100})
	f.Fuzz(func(t *testing.T, ms uint32, buckets uint8, ops []byte) {
		c := window.Config{Span: time.Duration(ms%1_000_000+1) * time.Millisecond, Buckets: int(buckets)%60 + 1}
		counters := map[window.Edge]*window.Counter{}
		for _, e := range []window.Edge{window.Recent, window.Strict, window.Interpolated} {
			c.Edge = e
			counters[e] = window.NewCounterAt(c, t0)
		}
		var events []event
		var now time.Duration
		for i := 0; i+1 < len(ops); i += 2 {
			now += c.Span * time.Duration(ops[i+1]) / 100
			events = append(events, event{now, int64(ops[i])})
			for _, counter := range counters {
				counter.AddAt(t0.Add(now), int64(ops[i]))
			}
			look := t0.Add(now + c.Span*time.Duration(ops[i]%16)/40)
			// rounded up to whole buckets
			exact := trueSum(events, look.Sub(t0), counters[window.Recent].Span())
			recent, strict := counters[window.Recent].SumAt(look), counters[window.Strict].SumAt(look)
			require.LessOrEqual(t, recent, exact, "recent at %v", look.Sub(t0))
			require.GreaterOrEqual(t, strict, exact, "strict at %v", look.Sub(t0))
			between := counters[window.Interpolated].SumAt(look)
			require.GreaterOrEqual(t, between, recent)
			require.LessOrEqual(t, between, strict)
		}
	})
}

func TestCounterInterpolatesTheOldestBucket(t *testing.T) {
	c := window.NewCounterAt(window.Config{Span: 10 * time.Second, Buckets: 10, Edge: window.Interpolated}, t0)
	c.AddAt(t0, 100)
	for _, step := range []struct {
		at   time.Duration
		want int64
	}{
		{9 * time.Second, 100},
		{10 * time.Second, 100},
		{10*time.Second + 250*time.Millisecond, 75},
		{10*time.Second + 990*time.Millisecond, 1},
		{11 * time.Second, 0},
	} {
		require.Equal(t, step.want, c.SumAt(t0.Add(step.at)), "at %v", step.at)
	}
}

func TestCounterForgetsWithoutAdditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := window.NewCounter(window.Config{Span: time.Minute, Buckets: 6})
		c.Add(3)
		time.Sleep(59 * time.Second)
		require.Equal(t, int64(3), c.Sum())
		time.Sleep(time.Second)
		require.Zero(t, c.Sum())
		time.Sleep(time.Hour)
		require.Zero(t, c.Sum())
		require.Equal(t, int64(3), c.Total())
		c.Add(4)
		require.Equal(t, int64(4), c.Sum())
		require.InDelta(t, 4.0/60, c.Rate(), 1e-12)
	})
}

func TestCounterWithAClockThatGoesBack(t *testing.T) {
	for _, back := range []time.Duration{10 * time.Millisecond, 5 * time.Second, time.Hour} {
		c := window.NewCounterAt(window.Config{Span: 10 * time.Second, Buckets: 10}, t0)
		now := t0.Add(30 * time.Second)
		c.AddAt(now, 5)
		c.AddAt(now.Add(-back), 2)
		require.Equal(t, int64(7), c.SumAt(now), "what comes %v late counts into the newest bucket", back)
		require.Equal(t, int64(7), c.SumAt(now.Add(-back)), "seen from %v before", back)
		require.Zero(t, c.SumAt(now.Add(10*time.Second)), "it ages from there")
	}
}

// TestTotalsBeyondInt64 lets the total wrap around, as a sum of nanoseconds of a thousand
// concurrent calls does after 107 days.
func TestTotalsBeyondInt64(t *testing.T) {
	const minute = int64(60_000 * time.Second)
	for _, sign := range []int64{1, -1} {
		c := window.NewCounterAt(window.Config{Span: time.Minute, Buckets: 6}, t0)
		for at := time.Duration(0); at < 300*24*time.Hour; at += time.Hour {
			c.AddAt(t0.Add(at), 60*minute*sign)
			require.Equal(t, 60*minute*sign, c.SumAt(t0.Add(at)), "after %v", at)
		}
	}
}

func TestCounterWrapsAround(t *testing.T) {
	for _, edge := range []window.Edge{window.Recent, window.Strict, window.Interpolated} {
		c := window.NewCounterAt(window.Config{Span: 10 * time.Second, Edge: edge}, t0)
		c.AddAt(t0, math.MaxInt64)
		require.Equal(t, int64(math.MaxInt64), c.SumAt(t0), edge)
		now := t0.Add(time.Minute)
		c.AddAt(now, math.MaxInt64)
		require.Equal(t, int64(math.MaxInt64), c.SumAt(now), edge)
		require.EqualValues(t, -2, c.Total(), edge)
		for _, n := range c.BucketsAt(now) {
			require.True(t, n == 0 || n == math.MaxInt64, "%v: a bucket of %d", edge, n)
		}
		end := now.Add(10 * time.Second)
		want := map[window.Edge]int64{window.Strict: math.MaxInt64, window.Interpolated: math.MaxInt64}[edge]
		require.Equal(t, want, c.SumAt(end), "%v, a span later: the whole of the oldest bucket, or nothing", edge)
		require.Zero(t, c.SumAt(now.Add(time.Hour)), edge)
	}
}

func TestCounterLosesNothingUnderManyWriters(t *testing.T) {
	const writers, adds = 8, 20_000
	c := window.NewCounter(window.Config{Span: time.Millisecond, Buckets: 10})
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range adds {
				c.Add(1)
				if sum := c.Sum(); sum < 0 || sum > writers*adds {
					t.Errorf("sum is %d while additions are running", sum)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(writers*adds), c.Total())
}

func TestValidateNamesEveryInvalidField(t *testing.T) {
	for _, c := range []struct {
		config window.Config
		want   string
	}{
		{window.Config{Span: -1}, "window: Span is -1ns, must lie between 1ms and 720h0m0s"},
		{window.Config{Span: time.Microsecond}, "window: Span is 1µs, must lie between 1ms and 720h0m0s"},
		{window.Config{Span: 31 * 24 * time.Hour, Buckets: 1000}, "window: Span is 744h0m0s, must lie between 1ms and 720h0m0s"},
		{window.Config{Buckets: -1}, "window: Buckets is -1, must lie between 1 and 100000"},
		{window.Config{Buckets: 100_001}, "window: Buckets is 100001, must lie between 1 and 100000"},
		{window.Config{Span: 24 * time.Hour}, "window: Buckets is 10, must be at least 24 for a Span of 24h0m0s: each bucket is at most 1h0m0s long"},
		{window.Config{Edge: "exact"}, `window: Edge is "exact", must be "recent", "strict" or "interpolated"`},
		{window.Config{Span: -1, Buckets: -1}, "window: Span is -1ns, must lie between 1ms and 720h0m0s\nwindow: Buckets is -1, must lie between 1 and 100000"},
	} {
		require.EqualError(t, c.config.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { window.NewCounter(c.config) })
		require.PanicsWithError(t, c.want, func() { window.NewView(c.config) })
	}
	require.NoError(t, window.Config{}.Validate())
	for _, good := range []window.Config{
		{Span: time.Millisecond, Buckets: 100_000},
		{Span: time.Millisecond, Buckets: 1},
		{Span: 720 * time.Hour, Buckets: 720},
		{Span: 720 * time.Hour, Buckets: 100_000},
	} {
		require.NoError(t, good.Validate(), "%+v", good)
		window.NewCounter(good).Add(1)
	}
}

// Scenario B71.
func TestAReadFillsTheGap(t *testing.T) {
	const width = 20 * time.Millisecond
	c := window.NewCounterAt(window.Config{Span: 10 * width}, t0)
	c.AddAt(t0, 1)
	c.AddAt(t0.Add(3*width), 1)
	require.Equal(t, int64(2), c.SumAt(t0.Add(3*width)))
	var filled int
	for at := range c.BucketsAt(t0.Add(3 * width)) {
		if !at.Before(t0) {
			filled++
		}
	}
	require.Equal(t, 4, filled)
	require.Zero(t, c.SumAt(t0.Add(3*width+10*width)))
}

// Scenario L48.
func TestEventsLeaveHoweverOftenTheWindowIsRead(t *testing.T) {
	for _, poll := range []time.Duration{0, 9 * time.Second, 19 * time.Second} {
		for edge, gone := range map[window.Edge]time.Duration{window.Recent: 60 * time.Second, window.Strict: 70 * time.Second} {
			c := window.NewCounterAt(window.Config{Span: time.Minute, Buckets: 6, Edge: edge}, t0)
			c.AddAt(t0, 1)
			for at := poll; poll > 0 && at < gone; at += poll {
				require.Equal(t, int64(1), c.SumAt(t0.Add(at)), "%v edge, at %v", edge, at)
				c.AddAt(t0.Add(at), 0)
			}
			require.Equal(t, int64(1), c.SumAt(t0.Add(gone-1)), "%v edge", edge)
			require.Zero(t, c.SumAt(t0.Add(gone)), "%v edge, polled each %v", edge, poll)
		}
	}
}

// Scenario L49.
func TestAnIdleHourDoesNotStretchTheWindow(t *testing.T) {
	for _, idle := range []time.Duration{60 * time.Second, 61 * time.Second, time.Hour} {
		c := window.NewCounterAt(window.Config{Span: time.Minute, Buckets: 60}, t0)
		c.AddAt(t0, 5)
		require.Zero(t, c.SumAt(t0.Add(idle)))
		c.AddAt(t0.Add(idle), 1)
		require.Equal(t, int64(1), c.SumAt(t0.Add(idle)))
		buckets := 0
		for range c.BucketsAt(t0.Add(idle)) {
			buckets++
		}
		require.Equal(t, 60, buckets)
		require.Equal(t, int64(1), c.SumAt(t0.Add(idle+59*time.Second)))
		require.Zero(t, c.SumAt(t0.Add(idle+61*time.Second)))
	}
}
