package migrating

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func throughFailsafe(e failsafe.Executor[*User]) *comparedProgram {
	return &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) { return failsafeGet(ctx, e, get, id) }}
}

func throughGate(g *weir.Gate) *comparedProgram {
	return &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) { return gateGet(ctx, g, get, id) }}
}

func TestGateBehavesLikeFailsafe(t *testing.T) {
	compareInBubble(t,
		func() *comparedProgram { return throughFailsafe(failsafeUsers()) },
		func() *comparedProgram { return throughGate(gateUsers()) }, outageScript)
}

func TestGateLimitsLikeFailsafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, own := throughFailsafe(failsafeUsers()), throughGate(gateUsers())
		for range 2 {
			start := time.Now()
			compare(t, peer, own, []step{{calls: 100}})
			require.Equal(t, start, time.Now(), "no call waited")
			time.Sleep(2 * time.Second)
		}
	})
}

func TestFailsafeIssuesAllTokensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := ratelimiter.NewBursty[*User](100, time.Second)
		own := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100), Burst: 100})
		time.Sleep(950 * time.Millisecond)
		require.True(t, peer.TryAcquirePermits(100))
		require.True(t, own.Take(100).OK)

		time.Sleep(60 * time.Millisecond)
		require.True(t, peer.TryAcquirePermits(100), "failsafe-go allows 200 within 60 ms around the end of a period")
		require.False(t, own.Take(7).OK)
		require.True(t, own.Take(6).OK, "six intervals of 10 ms have passed")
	})
}

func TestThresholdsOfFailsafe(t *testing.T) {
	builder := func() circuitbreaker.Builder[*User] {
		return circuitbreaker.NewBuilder[*User]().WithDelay(5 * time.Second).WithSuccessThreshold(1)
	}
	like := func(c breaker.Config) breaker.Config { c.Probes, c.Recovery = 1, breaker.Off; return c }
	cases := map[string]struct {
		peer circuitbreaker.Builder[*User]
		own  breaker.Config
	}{
		"WithFailureThreshold":       {builder().WithFailureThreshold(5), like(breaker.Config{ConsecutiveFailures: 5, FailureRate: breaker.Off})},
		"WithFailureThresholdRatio":  {builder().WithFailureThresholdRatio(5, 10), like(likeRatio)},
		"WithFailureThresholdPeriod": {builder().WithFailureThresholdPeriod(5, time.Minute), like(likePeriod)},
	}
	scripts := map[string][]step{
		"in a row":  {{calls: 4, err: errDown}, {calls: 1}, {calls: 4, err: errDown}, {calls: 1, err: errDown}, {calls: 3}, {wait: 6 * time.Second, calls: 1}, {calls: 5}},
		"far apart": {{calls: 3, err: errDown}, {calls: 20}, {wait: 2 * time.Minute, calls: 4, err: errDown}, {calls: 3}, {calls: 1, err: errDown}, {calls: 3}},
	}
	for name, c := range cases {
		for about, script := range scripts {
			t.Run(name+" "+about, func(t *testing.T) {
				peer := func() *comparedProgram { return throughFailsafe(failsafe.With[*User](c.peer.Build())) }
				compareInBubble(t, peer, func() *comparedProgram { return throughBreaker(c.own) }, script)
			})
		}
	}
}

func TestFailsafeBreakerCountsRefusalsOfItsLimiterAsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := circuitbreaker.NewBuilder[*User]().WithFailureThreshold(5).Build()
		peer := throughFailsafe(failsafe.With[*User](stop, ratelimiter.NewBursty[*User](1, time.Second)))
		gate := weir.New("users", weir.Config{Rate: limiter.PerSecond(1), Burst: 1, Breaker: breaker.Config{ConsecutiveFailures: 5, Recovery: breaker.Off}})
		countRefusals(t, peer, 10, nil)
		countRefusals(t, throughGate(gate), 10, nil)
		require.True(t, stop.IsOpen(), "refusals opened it, without a failed call")
		require.Equal(t, breaker.Closed, gate.Breaker().State())
	})
}

func TestALateResultClosesTheFailsafeBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := circuitbreaker.NewBuilder[*User]().WithFailureThreshold(1).WithDelay(5 * time.Second).Build()
		own := breaker.New("users", breaker.Config{ConsecutiveFailures: 1, FailureRate: breaker.Off, Cooldown: 5 * time.Second, Probes: 1, Recovery: breaker.Off})
		require.True(t, peer.TryAcquirePermit()) // a slow call begins
		slow, err := own.Allow()
		require.NoError(t, err)
		peer.RecordFailure()
		fails, err := own.Allow()
		require.NoError(t, err)
		fails.Record(t.Context(), nil, breaker.Failure)

		time.Sleep(6 * time.Second)
		require.True(t, peer.TryAcquirePermit()) // the probe
		_, err = own.Allow()
		require.NoError(t, err)
		peer.RecordSuccess() // the slow call ends
		require.False(t, slow.Record(t.Context(), nil, breaker.Success))

		require.True(t, peer.IsClosed(), "closed by a call from before the outage")
		require.Equal(t, breaker.HalfOpen, own.State())
	})
}

func TestFailsafeChargesACancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := ratelimiter.NewSmooth[*User](1, time.Second)
		own := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1})
		require.True(t, peer.TryAcquirePermit())
		require.True(t, own.Take(1).OK)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.Error(t, peer.AcquirePermit(ctx))
		require.Error(t, own.Wait(ctx, 1))

		time.Sleep(1100 * time.Millisecond)
		require.False(t, peer.TryAcquirePermit())
		require.True(t, own.Take(1).OK)
	})
}

func TestAPanickingProbeKeepsFailsafeHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := circuitbreaker.NewBuilder[*User]().WithFailureThreshold(1).WithDelay(5 * time.Second).Build()
		peer := throughFailsafe(failsafe.With[*User](stop))
		own := throughBreaker(breaker.Config{ConsecutiveFailures: 1, FailureRate: breaker.Off, Cooldown: 5 * time.Second, Probes: 1, Recovery: breaker.Off})
		panics := func(context.Context, int) (*User, error) { panic("probe") }
		for _, s := range []*comparedProgram{peer, own} {
			require.Zero(t, countRefusals(t, s, 1, errDown))
			time.Sleep(6 * time.Second)
			require.PanicsWithValue(t, "probe", func() { _, _ = s.get(t.Context(), panics, 7) })
			time.Sleep(24 * time.Hour)
		}
		require.Equal(t, 1, countRefusals(t, peer, 1, nil))
		require.Zero(t, countRefusals(t, own, 1, nil))
	})
}

func TestTheTimeoutOfFailsafeWaitsForTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := failsafe.With(timeout.New[*User](time.Second)).Get(func() (*User, error) {
			time.Sleep(time.Minute)
			return &User{7}, nil
		})
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, time.Minute, time.Since(began))
	})
}
