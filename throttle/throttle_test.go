package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

func TestThrottleRunsAndClassifies(t *testing.T) {
	th := throttle.New("t", throttle.Config{Classify: breaker.Ignore(context.DeadlineExceeded)})
	require.NoError(t, th.Run(bg(), succeed))
	require.ErrorIs(t, th.Run(bg(), fail), errDown)
	v, err := throttle.Do(bg(), th, func(context.Context) (int, error) { return 7, errDown })
	require.Equal(t, 7, v)
	require.ErrorIs(t, err, errDown)
	require.Error(t, th.Run(bg(), func(context.Context) error { return fmt.Errorf("slow: %w", context.DeadlineExceeded) }))
	require.PanicsWithValue(t, "boom", func() { _ = th.Run(bg(), func(context.Context) error { panic("boom") }) })
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = throttle.Do(bg(), th, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	})
	wg.Wait()
	gone, cancel := context.WithCancel(bg())
	require.ErrorIs(t, th.Run(gone, func(ctx context.Context) error { cancel(); return ctx.Err() }), context.Canceled)
	require.ErrorIs(t, th.Run(gone, succeed), context.Canceled, "not called, not counted")
	require.Panics(t, func() { _ = th.Run(bg(), nil) })
	totals := th.Totals()
	require.EqualValues(t, 1, totals.Successes)
	require.EqualValues(t, 4, totals.Failures, "two errors, a panic, an end of the goroutine")
	require.EqualValues(t, 2, totals.Ignored, "what Classify says, and a caller who gave up")
	require.Zero(t, totals.Refused)
}

func TestThrottleRefusalsCallNothingAndMatch(t *testing.T) {
	th := throttle.New("search", throttle.Config{}).SetRandom(alwaysBelow, infiniteInterval)
	for range 20 {
		_ = th.Run(bg(), fail)
	}
	called := false
	fn := func(context.Context) (int, error) { called = true; return 1, nil }
	v, err := throttle.Do(bg(), th, fn)
	require.Zero(t, v)
	require.False(t, called)
	require.ErrorIs(t, err, throttle.ErrRefused)
	require.ErrorIs(t, err, sentinel.ErrRefused)
	require.NotErrorIs(t, err, breaker.ErrOpen)
	require.Equal(t, time.Second, weir.RetryAfter(err), "one call a second is allowed in any case")
	require.EqualError(t, err, `throttle "search" refuses a share of the calls because too many fail`)
	require.Equal(t, window.Ignored, breaker.DefaultClassify(err), "a breaker around it takes it for no evidence")
}

func TestThrottlePermitCountsOnce(t *testing.T) {
	th := throttle.New("t", throttle.Config{Classify: func(error) window.Outcome { panic("odd") }})
	p, err := th.Allow()
	require.NoError(t, err)
	require.True(t, p.Record(window.Failure))
	require.False(t, p.Record(window.Success))
	require.False(t, p.RecordAt(time.Now(), window.Success))
	require.False(t, p.Done(bg(), nil))
	var none throttle.Permit
	require.False(t, none.Record(window.Success))

	p, _ = th.Allow()
	require.PanicsWithValue(t, "odd", func() { p.Done(bg(), nil) })
	require.False(t, p.Record(window.Success))
	p, _ = th.Allow()
	p.Record(window.Outcome(9))
	totals := th.Totals()
	require.EqualValues(t, 1, totals.Failures)
	require.EqualValues(t, 2, totals.Ignored)
	require.Zero(t, totals.Successes)
}

func TestThrottleOnTheRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := throttle.New("t", throttle.Config{}).SetRandom(alwaysBelow, time.Second)
		for range 20 {
			require.ErrorIs(t, th.Run(bg(), fail), errDown)
		}
		require.ErrorIs(t, th.Run(bg(), succeed), throttle.ErrRefused)
		time.Sleep(time.Second)
		require.NoError(t, th.Run(bg(), succeed), "one a second")
		require.ErrorIs(t, th.Run(bg(), succeed), throttle.ErrRefused)
		require.InDelta(t, 19.0/22, th.RefusalRate(), 1e-12)
		require.EqualValues(t, 20, th.Counts().Failures)
		time.Sleep(10 * time.Second)
		require.NoError(t, th.Run(bg(), succeed))
		require.Zero(t, th.RefusalRate())
	})
}

func TestThrottleShowsItsMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := throttle.New("t", throttle.Config{}).SetRandom(alwaysBelow, time.Second)
		want := map[string]float64{
			"calls success": 0, "calls failure": 0, "calls ignored": 0, "calls refused": 0,
			"window.calls success": 0, "window.calls failure": 0, "window.calls ignored": 0, "window.calls refused": 0,
			"refusal_ratio ": 0, "threshold.min_calls ": 20,
		}
		require.Equal(t, want, metricsOf(th))
		for range 20 {
			_ = th.Run(bg(), fail)
		}
		_ = th.Run(bg(), fail)
		for k, v := range map[string]float64{"failure": 20, "refused": 1} {
			want["calls "+k], want["window.calls "+k] = v, v
		}
		want["window.failure_ratio "], want["refusal_ratio "] = 1, 20.0/21
		require.Equal(t, want, metricsOf(th))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			for range th.Observe {
			}
		}))
		_, err := read.New(func(s *stat.Series) *stat.Series { return s }, th)
		require.NoError(t, err)
	})
}

func TestThrottleConfigSaysWhatIsWrong(t *testing.T) {
	require.NoError(t, throttle.Config{}.Validate())
	require.NoError(t, throttle.Config{K: 1, MinCalls: 1, MaxRefusal: 1, Window: time.Millisecond}.Validate())
	bad := throttle.Config{
		K: 0.5, MinCalls: -1, MaxRefusal: 1.1, Window: -1,
	}
	want := "throttle: K is 0.5, must be finite and at least 1\n" +
		"throttle: MinCalls is -1, must be at least 1\n" +
		"throttle: MaxRefusal is 1.1, must be above 0 and at most 1\n"
	err := bad.Validate()
	require.ErrorContains(t, err, want)
	require.ErrorContains(t, err, "throttle: Window: ")
	require.PanicsWithError(t, err.Error(), func() { throttle.New("t", bad) })
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		err := throttle.Config{K: odd, MaxRefusal: odd}.Validate()
		require.Equal(t, 1, strings.Count(err.Error(), "\n"), err)
	}
}

func TestThrottleCallsAllocateNothing(t *testing.T) {
	th := throttle.New("t", throttle.Config{MaxRefusal: 0.5})
	one := func(context.Context) (int, error) { return 1, errDown }
	for range 30 {
		_ = th.Run(bg(), fail)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = th.Run(bg(), fail)
		_, _ = throttle.Do(bg(), th, one)
		if p, err := th.Allow(); err == nil {
			p.Record(window.Failure)
		}
	}))
	require.NotZero(t, th.Totals().Refused)
}

// Every call is either made and counted, or refused and counted.
func TestThrottleAmidTraffic(t *testing.T) {
	for _, counted := range []bool{false, true} {
		th := throttle.New("t", throttle.Config{CountRefused: counted, Window: 10 * time.Millisecond}).SetRandom(rand.Float64, time.Millisecond)
		const callers, calls = 8, 5000
		var wg sync.WaitGroup
		made := make([]int64, callers)
		for i := range callers {
			wg.Go(func() {
				for n := range calls {
					err := th.Run(bg(), func(context.Context) error {
						made[i]++
						if n%8 != 0 {
							return errDown
						}
						return nil
					})
					if n%64 == 0 {
						for range th.Observe {
						}
					}
					if err != nil && !errors.Is(err, errDown) && !errors.Is(err, throttle.ErrRefused) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		sum := int64(0)
		for _, n := range made {
			sum += n
		}
		totals := th.Totals()
		require.Equal(t, sum, totals.Calls())
		require.Equal(t, callers*calls-sum, totals.Refused)
		require.NotZero(t, totals.Refused)
	}
}
