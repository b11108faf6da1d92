package weir_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

var errDown = errors.New("down")

func bg() context.Context { return context.Background() }

func fail(context.Context) error { return errDown }

func TestGateLimitsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("payments", weir.Config{Rate: limiter.PerSecond(10), Burst: 2})
		require.NoError(t, g.Run(bg(), succeed))
		require.NoError(t, g.Run(bg(), succeed))
		err := g.Run(bg(), succeed)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.NotErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 100*time.Millisecond, weir.RetryAfter(err))
		require.Equal(t, "limiter payments: no tokens left (limit 2), retry in 100ms", err.Error())

		time.Sleep(40 * time.Millisecond)
		later := g.Run(bg(), succeed)
		require.Same(t, err, later, "calls that are refused until the same moment share one error")
		require.Equal(t, 160*time.Millisecond, weir.RetryAfter(later), "the first token is for the call before")

		time.Sleep(60 * time.Millisecond)
		require.NoError(t, g.Run(bg(), succeed))
		require.NotSame(t, err, g.Run(bg(), succeed))
		require.Equal(t, window.Counts{Successes: 3}, g.Breaker().Counts(), "the breaker does not count calls that the limiter refuses")
		require.Equal(t, limiter.Stats{Allowed: 3, Refused: 3}, g.Admissions())
	})
}

func TestOpenGateSpendsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("payments", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 100, Breaker: breaker.Config{FailureRun: breaker.Off}})
		for range 20 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		require.True(t, g.Tripped())
		require.Equal(t, breaker.Open, g.Breaker().State())
		for range 500 {
			err := g.Run(bg(), succeed)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.NotErrorIs(t, err, limiter.ErrLimited)
			require.Equal(t, time.Second, weir.RetryAfter(err))
		}
		require.Equal(t, 80, g.Limiter().Take(0).Remaining, "an open breaker spends no token")
		require.Equal(t, int64(500), g.Totals().Refused)
	})
}

// Other libraries have this flaw: if one part refuses a call, the call keeps the token or probe
// slot that it got from the other part.
func TestRefusedCallsKeepNeitherTokenNorProbeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 21, Breaker: breaker.Config{Probes: 2, FailureRun: breaker.Off, Recovery: breaker.Off}})
		for range 20 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		time.Sleep(5 * time.Second) // half-open, with 6 tokens
		for range 6 {
			require.True(t, g.Limiter().Take(1).OK)
		}
		for range 10 { // over the limit: no probe slot is taken
			require.ErrorIs(t, g.Run(bg(), succeed), limiter.ErrLimited)
		}
		for series, v := range g.Breaker().Observe {
			if series.Instrument.Name == "weir.breaker.abandoned_probes" {
				require.Zero(t, v)
			}
		}

		time.Sleep(3 * time.Second) // three tokens
		first, err := g.Breaker().Allow()
		require.NoError(t, err)
		second, err := g.Breaker().Allow()
		require.NoError(t, err)
		for range 10 { // no probe slot is free: no token is spent
			require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
		}
		require.Equal(t, 3, g.Limiter().Take(0).Remaining)
		require.True(t, first.Record(breaker.Success))
		require.True(t, second.Record(breaker.Success))
		require.NoError(t, g.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, g.Breaker().State())
	})
}

// opensBetween is a limiter that opens the breaker when a token is taken, which is after the check
// of the breaker and before its permit is acquired.
type opensBetween struct {
	*limiter.TokenBucket
	open func()
}

func (l opensBetween) TakeAt(t time.Time, n int) limiter.Result {
	r := l.TokenBucket.TakeAt(t, n)
	if n > 0 {
		l.open()
	}
	return r
}

func TestTokenIsRefundedIfTheBreakerOpensMeanwhile(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
	l := opensBetween{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 5}), func() { _ = b.Run(bg(), fail) }}
	g := weir.Join("g", weir.Parts{Breaker: b, Limiter: l})
	require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
	require.Equal(t, 5, l.Take(0).Remaining)
	require.Zero(t, g.Admissions())
}

func TestCallsWaitUpToMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: 250 * time.Millisecond})
		start := time.Now()
		var mu sync.Mutex
		var passed []time.Duration
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				err := g.Run(bg(), func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					passed = append(passed, time.Since(start))
					return nil
				})
				if err != nil {
					require.ErrorIs(t, err, limiter.ErrLimited)
					require.True(t, strings.HasPrefix(err.Error(), "limiter g: "), err.Error())
					require.Positive(t, weir.RetryAfter(err))
					refused.Add(1)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}, passed)
		require.Equal(t, int64(2), refused.Load())

		ctx, cancel := context.WithCancel(bg())
		time.AfterFunc(10*time.Millisecond, cancel)
		require.ErrorIs(t, g.Run(ctx, succeed), context.Canceled)
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 2, Refused: 2, Cancelled: 1}, g.Admissions())

		hurried, stop := context.WithTimeout(bg(), time.Millisecond)
		defer stop()
		err := g.Run(hurried, succeed)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, weir.ErrRefused, "the deadline cannot be met, so the call is refused at once")
	})
}

func TestWaitingCallsAreRefusedWhenTheBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 20, MaxWait: time.Hour, Breaker: breaker.Config{MinCalls: 21, FailureRun: breaker.Off}})
		for range 19 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		last, err := g.Breaker().Allow() // its failure opens the breaker
		require.NoError(t, err)
		require.NoError(t, g.Run(bg(), func(context.Context) error { return nil }))

		start := time.Now()
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := g.Run(bg(), succeed); errors.Is(err, breaker.ErrOpen) && weir.RetryAfter(err) == time.Second {
					refused.Add(1)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		require.True(t, last.Record(breaker.Failure))
		wg.Wait()
		require.Equal(t, int64(50), refused.Load())
		require.Equal(t, 500*time.Millisecond, time.Since(start), "all are refused at once")
		require.Equal(t, int64(50), g.Totals().Refused)
		require.Equal(t, limiter.Stats{Allowed: 20}, g.Admissions())
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "they took no token")
	})
}

func TestHoldHoldsANamedLimiter(t *testing.T) {
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100)})
	g := weir.Join("g", weir.Parts{Breaker: breaker.New("g", breaker.Config{}), Limiter: limiter.NewJoint(limiter.JointConfig{Name: "g"}, bucket)})
	g.Hold(time.Hour)
	require.False(t, bucket.Take(1).OK)
	values, _ := readMetrics(g)
	require.InDelta(t, 1, values["weir.limiter.period"], 0)
}

// The breaker may have closed again before the waiting call runs.
func TestWaitingCallIsRefusedEvenIfTheBreakerClosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: time.Hour})
		require.NoError(t, g.Run(t.Context(), succeed))
		var err error
		go func() { err = g.Run(t.Context(), succeed) }()
		synctest.Wait()
		g.Breaker().Force(breaker.ForcedOpen)
		g.Breaker().Release()
		synctest.Wait()
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.EqualValues(t, 1, g.Totals().Refused)
		require.Zero(t, g.Admissions().Waiting)
	})
}

func TestGateWithoutALimit(t *testing.T) {
	g := weir.New("g", weir.Config{})
	require.Nil(t, g.Limiter())
	for range 10_000 {
		require.NoError(t, g.Run(bg(), succeed))
	}
	require.Zero(t, g.Admissions())
	for s := range g.Observe {
		require.False(t, strings.HasPrefix(s.Instrument.Name, "weir.limiter"), s.Instrument.Name)
	}
}
