package breaker_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// Other breakers are changed by the results of calls that began before the breaker opened.
func TestScenarioA19_LateResultsChangeNothing(t *testing.T) {
	for _, late := range []breaker.Outcome{breaker.Success, breaker.Failure, breaker.Ignored} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changes atomic.Int64
				b := breaker.New("b", breaker.Config{Recovery: breaker.Off, OnChange: func(breaker.Change) { changes.Add(1) }})
				early := holdPermits(t, b, 12)
				open(t, b)
				until := time.Now().Add(5 * time.Second)

				for _, p := range early[:4] { // while open: neither closed nor prolonged
					require.False(t, p.Record(late))
				}
				require.Equal(t, breaker.Open, b.State())
				time.Sleep(time.Until(until))
				require.Equal(t, breaker.HalfOpen, b.State())

				// while half-open: no verdict, and no slot acquired or released
				probe := holdPermits(t, b, 2)
				for _, p := range early[4:8] {
					require.False(t, p.Record(late))
				}
				require.Equal(t, breaker.HalfOpen, b.State())
				require.Zero(t, b.Counts().Calls())
				probe = append(probe, holdPermits(t, b, 1)...)
				requireRefused(t, b)
				for _, p := range probe {
					require.True(t, p.Record(breaker.Success))
				}
				require.Equal(t, breaker.Closed, b.State())

				for _, p := range early[8:] { // while closed again: they do not count
					require.False(t, p.Record(late))
				}
				require.Zero(t, b.Counts().Calls())
				require.Equal(t, int64(12), b.StatsNow().Late)
				require.Equal(t, int64(3), changes.Load())
			})
		})
	}
}

// In another breaker calls slower than the window are never counted.
func TestScenarioA12_FailuresSlowerThanTheWindowStillTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Window: time.Second})
		for range 20 {
			go func() {
				_ = b.Run(bg(), func(context.Context) error { time.Sleep(time.Minute); return errDown })
			}()
		}
		time.Sleep(time.Minute + 1)
		require.Equal(t, breaker.Open, b.State())
	})
}

// In another breaker a permit that is used twice counts twice.
func TestScenarioA30_DoneCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 3})
		p, err := b.Allow()
		require.NoError(t, err)
		require.True(t, p.Record(breaker.Success))
		require.False(t, p.Record(breaker.Success))
		require.False(t, p.Record(breaker.Failure))
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Equal(t, window.Counts{Successes: 1}, withoutStreak(b.Counts()))
		require.Zero(t, b.StatsNow().Late)

		var none breaker.Permit
		require.False(t, none.Record(breaker.Success))
		require.False(t, none.RecordAt(t0, breaker.Success))

		b = breaker.New("b", breaker.Config{})
		p, err = b.Allow()
		require.NoError(t, err)
		var counted atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if p.Record(breaker.Failure) {
					counted.Add(1)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), counted.Load())
		require.Equal(t, int64(1), b.Counts().Failures)
	})
}

func withoutStreak(c window.Counts) window.Counts {
	c.ConsecutiveFailures = 0
	return c
}

// In another breaker refusals are counted as results.
func TestScenarioA22_RefusalsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := breaker.New("inner", breaker.Config{Cooldown: time.Hour})
		outer := breaker.New("outer", breaker.Config{})
		open(t, inner)
		for range 100 {
			err := outer.Run(bg(), func(ctx context.Context) error { return inner.Run(ctx, succeed) })
			require.ErrorIs(t, err, breaker.ErrOpen)
		}
		require.Equal(t, breaker.Closed, outer.State())
		require.Equal(t, window.Counts{Ignored: 100}, outer.Counts())

		b := newHalfOpen(t, breaker.Config{Probes: 2})
		holdPermits(t, b, 2)
		for range 100 {
			requireRefused(t, b)
		}
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Zero(t, b.Counts().Calls())
		require.Equal(t, int64(100), b.Counts().Refused)
	})
}

// Another breaker never opens for a service that hangs until its callers' deadlines.
func TestScenarioA35_DeadlinesAreFailuresAndCancellingIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off})
		for range 50 {
			ctx, cancel := context.WithCancel(bg())
			time.AfterFunc(time.Millisecond, cancel)
			require.ErrorIs(t, b.Run(ctx, hang), context.Canceled)
		}
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, window.Counts{Ignored: 50}, b.Counts())
		for range 20 {
			ctx, cancel := context.WithTimeout(bg(), time.Millisecond)
			require.ErrorIs(t, b.Run(ctx, hang), context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, breaker.Open, b.State())
	})
}

// A probe that its caller cancels decides nothing and releases its slot.
func TestACancelledProbeDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, Probes: 1})
		for range 5 {
			ctx, cancel := context.WithCancel(bg())
			err := b.Run(ctx, func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() })
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, breaker.HalfOpen, b.State())
		}
		require.NoError(t, b.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestScenarioA36_PanicIsAFailureAndPropagates(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	boom := &struct{ n int }{7}
	require.PanicsWithValue(t, boom, func() { _ = b.Run(bg(), func(context.Context) error { panic(boom) }) })
	require.PanicsWithValue(t, boom, func() {
		_, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { panic(boom) })
	})
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.Run(bg(), func(context.Context) error { runtime.Goexit(); return nil }) })
	wg.Wait()
	require.Equal(t, int64(3), b.Counts().Failures)
}
