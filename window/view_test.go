package window_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func TestViewBeginsWithItsFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := window.NewView(window.Config{Span: time.Minute, Buckets: 12})
		require.Zero(t, v.Counts())

		total := window.Totals{Successes: 1000, Failures: 50}
		v.Sample(total)
		require.Zero(t, v.Counts(), "earlier calls are not in the view")

		time.Sleep(15 * time.Second)
		total.Failures += 3
		total.ConsecutiveFailures = 3
		v.Sample(total)
		require.Equal(t, window.Counts{Failures: 3, ConsecutiveFailures: 3}, v.Counts())

		time.Sleep(30 * time.Second)
		total.Successes += 7
		v.Sample(total)
		require.Equal(t, int64(10), v.Counts().Calls())

		time.Sleep(30 * time.Second) // 75 s: the failures were sampled at 15 s
		require.Equal(t, int64(7), v.Counts().Calls(), "old calls leave without a sample")
		time.Sleep(time.Hour)
		require.Zero(t, v.Counts().Calls())
	})
}

func TestViewOverTotalsThatRestart(t *testing.T) {
	v := window.NewViewAt(window.Config{Span: time.Minute}, t0)
	v.SampleAt(t0, window.Totals{Successes: 100})
	v.SampleAt(t0.Add(time.Second), window.Totals{Successes: 110})
	v.SampleAt(t0.Add(2*time.Second), window.Totals{Successes: 3})
	v.SampleAt(t0.Add(3*time.Second), window.Totals{Successes: 8})
	require.Equal(t, int64(18), v.CountsAt(t0.Add(3*time.Second)).Successes, "10 before, 8 after")
}

// TestOneFallingNumberMeansARestartOfAll uses totals that restarted and already exceed some of the
// old numbers. All of their numbers count.
func TestOneFallingNumberMeansARestartOfAll(t *testing.T) {
	old := window.Totals{Successes: 100, Failures: 3, Slow: 7, SlowFailures: 2, Ignored: 5, Refused: 9}
	for name, now := range map[string]window.Totals{
		"successes":     {Successes: 99, Failures: 40, Slow: 50, SlowFailures: 8, Ignored: 60, Refused: 70},
		"failures":      {Successes: 960, Failures: 2, Slow: 50, SlowFailures: 8, Ignored: 60, Refused: 70},
		"slow":          {Successes: 960, Failures: 40, Slow: 6, SlowFailures: 6, Ignored: 60, Refused: 70},
		"slow failures": {Successes: 960, Failures: 40, Slow: 50, SlowFailures: 1, Ignored: 60, Refused: 70},
		"ignored":       {Successes: 960, Failures: 40, Slow: 50, SlowFailures: 8, Refused: 70},
		"refused":       {Successes: 960, Failures: 40, Slow: 50, SlowFailures: 8, Ignored: 60, Refused: 8},
	} {
		require.Equal(t, window.Counts(now), now.Minus(old), name)
		v := window.NewViewAt(window.Config{Span: time.Minute}, t0)
		v.SampleAt(t0, old)
		v.SampleAt(t0.Add(time.Second), now)
		require.Equal(t, window.Counts(now), v.CountsAt(t0.Add(time.Second)), name)
	}
	require.Zero(t, old.Minus(old))
	require.Zero(t, window.Totals{ConsecutiveFailures: 1}.Minus(window.Totals{ConsecutiveFailures: 9}), "consecutive failures are no total")
}

func TestAnOlderSampleIsNotARestart(t *testing.T) {
	v := window.NewViewAt(window.Config{Span: time.Minute}, t0)
	at := func(s int, n int64) int64 {
		v.SampleAt(t0.Add(time.Duration(s)*time.Second), window.Totals{Successes: n})
		return v.CountsAt(t0.Add(10 * time.Second)).Successes
	}
	require.Equal(t, int64(0), at(0, 1000))
	require.Equal(t, int64(5), at(2, 1005))
	require.Equal(t, int64(5), at(1, 1003), "a late sample")
	require.Equal(t, int64(9), at(3, 1009))
	require.Equal(t, int64(12), at(2, 1012), "a late sample with newer totals")
	require.Equal(t, int64(19), at(3, 7), "a restart")
}

// TestViewOfImpossibleTotals uses totals that a faulty source may return.
func TestViewOfImpossibleTotals(t *testing.T) {
	v := window.NewViewAt(window.Config{Span: time.Minute}, t0)
	for i, n := range []int64{0, math.MaxInt64, -1, math.MinInt64, 5, math.MaxInt64} {
		at := t0.Add(time.Duration(i) * time.Minute)
		v.SampleAt(at, window.Totals{Successes: n, Failures: n, Slow: n, SlowFailures: n, Ignored: n, Refused: n})
		c := v.CountsAt(at)
		require.GreaterOrEqual(t, c.Successes, int64(0), "after %d", n)
		require.GreaterOrEqual(t, c.Calls()+c.Ignored+c.Refused, int64(0), "after %d", n)
	}
	require.Equal(t, int64(1<<60-5), v.CountsAt(t0.Add(5*time.Minute)).Failures)
}

func TestStrictViewCoversOneMoreBucket(t *testing.T) {
	sample := func(edge window.Edge) int64 {
		v := window.NewViewAt(window.Config{Span: 10 * time.Second, Buckets: 10, Edge: edge}, t0)
		v.SampleAt(t0, window.Totals{})
		v.SampleAt(t0.Add(500*time.Millisecond), window.Totals{Refused: 8})
		return v.CountsAt(t0.Add(10*time.Second + 500*time.Millisecond)).Refused
	}
	require.Equal(t, int64(0), sample(window.Recent))
	require.Equal(t, int64(4), sample(window.Interpolated))
	require.Equal(t, int64(8), sample(window.Strict))
}

// FuzzView compares a view with the difference of samples, rounded to buckets.
func FuzzView(f *testing.F) {
	f.Add(uint8(5), []byte{1, 5, 2, 60, 3, 255, 4, 0})
	f.Fuzz(func(t *testing.T, buckets uint8, ops []byte) {
		n := int(buckets)%20 + 1
		c := window.Config{Span: time.Duration(n) * time.Second, Buckets: n}
		v := window.NewViewAt(c, t0)
		v.SampleAt(t0, window.Totals{Failures: 77})
		type sample struct {
			bucket int64
			n      int64
		}
		var seen []sample
		total := window.Totals{Failures: 77}
		var now time.Duration
		for i := 0; i+1 < len(ops); i += 2 {
			now += time.Duration(ops[i+1]) * 100 * time.Millisecond
			total.Failures += int64(ops[i])
			v.SampleAt(t0.Add(now), total)
			seen = append(seen, sample{int64(now / time.Second), int64(ops[i])})
			look := now + time.Duration(ops[i])*50*time.Millisecond
			var want int64
			for _, s := range seen {
				if s.bucket > int64(look/time.Second)-int64(n) {
					want += s.n
				}
			}
			require.Equal(t, want, v.CountsAt(t0.Add(look)).Failures, "at %v", look)
		}
	})
}
