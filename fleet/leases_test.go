package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// requestCount returns how many scripts a server has run.
func requestCount(s *redistest.Server) int {
	calls := s.Calls()
	return calls["evalsha"] + calls["eval"]
}

func requireTake(t *testing.T, want fleet.Result, take func(context.Context, string, int) (fleet.Result, error), key string, n int) {
	t.Helper()
	got, err := take(t.Context(), key, n)
	require.NoError(t, err)
	require.Equalf(t, [2]any{want.OK, want.From}, [2]any{got.OK, got.From}, "Take(%d)", n)
}

var (
	taken   = fleet.Result{From: fleet.FromServer, Result: limiter.Result{OK: true}}
	refused = fleet.Result{From: fleet.FromServer}
	denied  = fleet.Result{From: fleet.FromDenyCache}
	granted = fleet.Result{Result: limiter.Result{OK: true}, From: fleet.FromLease}
)

// Scenario L62.
func TestRefusalIsRepeatedWithoutAskingRedis(t *testing.T) {
	s := redistest.Start(t)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
	b := newLimiter(l, "deny", fleet.TokenBucket{Rate: limiter.PerMinute(1), Burst: 3}, fleet.Config{OnOutage: fleet.FailError})
	requireTake(t, taken, b.Take, "k", 2)
	requireTake(t, refused, b.Take, "k", 2)
	before := requestCount(s)
	for range 10_000 {
		requireTake(t, denied, b.Take, "k", 2)
	}
	require.Equal(t, before, requestCount(s), "round trips for 10,000 refusals")
	requireTake(t, denied, b.Take, "k", 3)
	requireTake(t, taken, b.Take, "k", 1)
	require.Equal(t, before+1, requestCount(s), "a request for fewer asks Redis")
	r, err := b.Take(t.Context(), "k", 2)
	require.NoError(t, err)
	require.Equal(t, fleet.FromDenyCache, r.From)
	require.Positive(t, r.RetryAfter)
	require.LessOrEqual(t, r.RetryAfter, time.Minute)
}

func TestRefusalIsForgottenAfterRefundResetAndSetRate(t *testing.T) {
	l := connect(t)
	hourly := fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1}
	c := fleet.Config{OnOutage: fleet.FailError}
	here := newLimiter(l, "gone", hourly, c)
	for name, undo := range map[string]func(key string) error{
		"by a refund of this process": func(key string) error { return here.Refund(t.Context(), time.Now(), key, 1) },
		"by a reset of this process":  func(key string) error { return here.Reset(t.Context(), key) },
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey()
			requireTake(t, taken, here.Take, key, 1)
			requireTake(t, refused, here.Take, key, 1)
			require.NoError(t, undo(key))
			requireTake(t, taken, here.Take, key, 1)
		})
	}
	t.Run("by a raise of the limit", func(t *testing.T) {
		log, key := newLimiter(l, "gone-log", fleet.SlidingLog{Limit: 1, Window: time.Hour}, c), newKey()
		requireTake(t, taken, log.Take, key, 1)
		requireTake(t, refused, log.Take, key, 1)
		requireTake(t, denied, log.Take, key, 1)
		require.NoError(t, redisson.SetRate(t.Context(), log, key, 2, time.Hour))
		requireTake(t, taken, log.Take, key, 1)
	})
	t.Run("not by another process, as long as it was to last", func(t *testing.T) {
		key := newKey()
		limit := fleet.TokenBucket{Rate: limiter.Per(1, 2*time.Second), Burst: 1}
		quick := newLimiter(l, "gone-quick", limit, c)
		requireTake(t, taken, quick.Take, key, 1)
		requireTake(t, refused, quick.Take, key, 1)
		require.NoError(t, newLimiter(l, "gone-quick", limit, c).Reset(t.Context(), key))
		requireTake(t, denied, quick.Take, key, 1)
		require.Eventually(t, func() bool {
			r, err := quick.Take(t.Context(), key, 1)
			return err == nil && r.OK
		}, longTimeout, 10*time.Millisecond)
	})
}

// Redis has lost the key, and this process does not know that. Another limiter asks Redis.
func TestARefusalIsRepeatedAfterRedisHasLostTheKey(t *testing.T) {
	s := redistest.Start(t)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
	here, there := newLimiter(l, "lost", hourlyBucket, errorOnOutage), newLimiter(l, "lost", hourlyBucket, errorOnOutage)
	for ok := true; ok; {
		r, err := here.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		ok = r.OK
	}
	s.Do("FLUSHALL")
	requireTake(t, denied, here.Take, "k", 1)
	requireTake(t, taken, there.Take, "k", 1)
}

func TestNoRefusalIsRememberedWithMaxDeniedOff(t *testing.T) {
	l, key := connect(t), newKey()
	hourly := fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1}
	here := newLimiter(l, "gone", hourly, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
	there := newLimiter(l, "gone", hourly, errorOnOutage) // as another process would have it
	requireTake(t, taken, there.Take, key, 1)
	requireTake(t, refused, here.Take, key, 1)
	requireTake(t, refused, here.Take, key, 1)
	require.NoError(t, there.Reset(t.Context(), key))
	requireTake(t, taken, here.Take, key, 1)
}

// Scenario L61, which the tests of internal/lease show too.
func TestLeasesSaveRoundTripsAndKeepTheirBound(t *testing.T) {
	const nodes, maxLease, rate, burst = 3, 10, 1000, 400
	s := redistest.Start(t)
	var buckets []*fleet.Limiter
	for range nodes {
		l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
		buckets = append(buckets, newLimiter(l, "lease", fleet.TokenBucket{Rate: limiter.PerSecond(rate), Burst: burst},
			fleet.Config{OnOutage: fleet.FailError, MaxLease: maxLease}))
	}
	before, start := requestCount(s), time.Now()
	var allowed, leased atomic.Int64
	var g sync.WaitGroup
	for _, b := range buckets {
		g.Go(func() {
			for time.Since(start) < time.Second {
				r, err := b.Take(t.Context(), "k", 1)
				if err != nil {
					t.Error(err)
				}
				if r.OK {
					allowed.Add(1)
				}
				if r.From == fleet.FromLease {
					leased.Add(1)
				}
				waitFor(5 * time.Millisecond) // 200 a second and node, at most
			}
		})
	}
	g.Wait()
	trips := requestCount(s) - before
	t.Logf("%d allowed, %d by leases, in %d round trips", allowed.Load(), leased.Load(), trips)
	require.LessOrEqual(t, float64(allowed.Load()), burst+rate*time.Since(start).Seconds()+nodes*maxLease)
	require.Greater(t, leased.Load(), allowed.Load()/2)
	require.Less(t, int64(trips), allowed.Load()/3)
}

func TestLeasesAreGivenBack(t *testing.T) {
	l := connect(t)
	c := fleet.Config{OnOutage: fleet.FailError, MaxLease: 10}
	b := newLimiter(l, "returned", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1000}, c)
	key := newKey()
	for range 25 {
		_, err := b.Take(t.Context(), key, 1)
		require.NoError(t, err)
	}
	r, err := b.Take(t.Context(), key, 0)
	require.NoError(t, err)
	require.Less(t, r.Remaining, 975, "some tokens are held")
	require.NoError(t, b.Close(t.Context()))
	r, err = b.Take(t.Context(), key, 0)
	require.NoError(t, err)
	require.Equal(t, 975, r.Remaining)
	requireTake(t, taken, b.Take, key, 1)
	require.NoError(t, newLimiter(l, "none", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour)}, fleet.Config{OnOutage: fleet.FailError}).Close(t.Context()))
}

func TestLeaseWorksWhileRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: 2 * time.Second})
	b := newLimiter(l, "away", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1000}, fleet.Config{OnOutage: fleet.FailClosed, MaxLease: 10})
	for from := fleet.FromServer; from != fleet.FromLease; {
		r, err := b.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		from = r.From
	}
	s.Kill()
	requireTake(t, granted, b.Take, "k", 1)
	requireTake(t, fleet.Result{From: fleet.FromOutage}, b.Take, "k", 1)
}

func TestTakeWithLeasesEndsWithinTheTimeout(t *testing.T) {
	t.Parallel()
	// a second Timeout would end 1.5 s after the first
	const timeout, slack = 1500 * time.Millisecond, 1200 * time.Millisecond
	s := redistest.Start(t)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: timeout, Breaker: breaker.Config{ConsecutiveFailures: 1000, MinCalls: 1000}})
	b := newLimiter(l, "slow", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1000}, fleet.Config{OnOutage: fleet.FailClosed, MaxLease: 10})
	for from := fleet.FromServer; from != fleet.FromLease; {
		r, err := b.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		from = r.From
	}
	s.Pause()
	var g sync.WaitGroup
	for range 32 {
		g.Go(func() {
			start := testenv.Running()
			r, err := b.Take(t.Context(), "k", 1)
			if took := testenv.Running() - start; took > timeout+slack || err != nil || r.OK && r.From != fleet.FromLease {
				t.Errorf("after %s: %v from %s, %v", took, r.OK, r.From, err)
			}
		})
	}
	g.Wait()
	s.Continue()
}

func TestResetForgetsTheLease(t *testing.T) {
	l := connect(t)
	b := newLimiter(l, "reset", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 1000}, fleet.Config{OnOutage: fleet.FailError, MaxLease: 10})
	key := newKey()
	for range 10 {
		_, err := b.Take(t.Context(), key, 1)
		require.NoError(t, err)
	}
	require.NoError(t, b.Reset(t.Context(), key))
	requireTake(t, taken, b.Take, key, 1)
	r, err := b.Take(t.Context(), key, 0)
	require.NoError(t, err)
	require.Equal(t, 999, r.Remaining)
}

func TestValidateMaxDeniedAndMaxLease(t *testing.T) {
	l := connect(t)
	for _, test := range []struct {
		config fleet.Config
		want   string
	}{
		{fleet.Config{OnOutage: fleet.FailOpen, MaxDenied: -2}, "fleet: MaxDenied is -2, must lie between 1 and 2147483647 (or be 0 for the default, or limiter.Off)"},
		{fleet.Config{OnOutage: fleet.FailOpen, MaxLease: 1}, "fleet: MaxLease is 1, must lie between 2 and 1000000 (or be 0 for no leases)"},
		{fleet.Config{OnOutage: fleet.FailOpen, MaxLease: -1}, "fleet: MaxLease is -1, must lie between 2 and 1000000 (or be 0 for no leases)"},
		{fleet.Config{OnOutage: fleet.FailOpen, MaxLease: 2_000_000}, "fleet: MaxLease is 2000000, must lie between 2 and 1000000 (or be 0 for no leases)"},
	} {
		test.config.Link, test.config.Limits = l, []fleet.Limit{hourlyBucket}
		t.Run(test.want, func(t *testing.T) { require.EqualError(t, test.config.Validate(), test.want) })
	}
	require.NoError(t, fleet.Config{Link: l, Limits: []fleet.Limit{hourlyBucket}, OnOutage: fleet.FailOpen, MaxDenied: limiter.Off, MaxLease: 2}.Validate())
}

func TestLeasesOfAnIdleProcessReturn(t *testing.T) {
	t.Parallel()
	l, daily := connect(t), fleet.FixedWindow{Limit: 10_000, Window: 24 * time.Hour}
	b := newLimiter(l, "idle", daily, fleet.Config{OnOutage: fleet.FailError, MaxLease: 500})
	look := newLimiter(l, "idle", daily, errorOnOutage)
	held := func() (n int) {
		for i := range 10 {
			r, err := look.Take(t.Context(), fmt.Sprint(i), 0)
			require.NoError(t, err)
			n += 10_000 - 100 - r.Remaining
		}
		return n
	}
	for i := range 10 {
		for range 100 {
			_, err := b.Take(t.Context(), fmt.Sprint(i), 1)
			require.NoError(t, err)
		}
	}
	require.Positive(t, held())
	require.Eventually(t, func() bool { return held() == 0 }, longTimeout, 50*ms)
}
