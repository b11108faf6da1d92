package fleet_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// awayTimeout is long, because the fakeServer of an unavailableLink answers at once.
const awayTimeout = 2 * time.Second

// unavailableLink returns a link to a Redis that became unavailable after Connect.
func unavailableLink(t *testing.T) (*fakeServer, *fleet.Link) {
	t.Helper()
	f := newFakeServer(t, map[string]string{"evalsha": "-LOADING Redis is loading the dataset in memory\r\n"})
	return f, connectTo(t, f.client(), fleet.LinkConfig{Timeout: awayTimeout, Breaker: breaker.Config{Cooldown: time.Minute, CooldownJitter: 1e-9}})
}

// A burst of 10, of which this node has half.
func TestPolicyDecidesWhileRedisIsUnavailable(t *testing.T) {
	for policy, c := range map[fleet.OnOutage]struct {
		share   float64
		allowed int
		refusal limiter.Result
	}{
		fleet.FailOpen:   {0, 30, limiter.Result{}},
		fleet.FailClosed: {0, 0, limiter.Result{Limit: 10}},
		fleet.FailLocal:  {0.5, 5, limiter.Result{Limit: 10}},
	} {
		t.Run(string(policy), func(t *testing.T) {
			_, l := unavailableLink(t)
			b := newLimiter(l, "policy", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 10}, fleet.Config{OnOutage: policy, Share: c.share})
			allowed := 0
			for range 30 {
				r, err := b.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				require.Equal(t, fleet.FromOutage, r.From)
				require.Equal(t, 10, r.Limit)
				require.Equal(t, r.OK, r.RetryAfter == 0, "%+v", r)
				if r.OK {
					allowed++
				}
			}
			require.Equal(t, c.allowed, allowed)
			r, err := b.Take(t.Context(), "user", 11)
			require.NoError(t, err)
			require.Equal(t, limiter.Never, r.RetryAfter, "a request for more than the limit can never succeed")
			r, err = b.Take(t.Context(), "user", 0)
			require.NoError(t, err)
			require.True(t, r.OK)
			r, err = b.Take(t.Context(), "user", -1)
			require.NoError(t, err)
			require.False(t, r.OK)
		})
	}
}

func TestAShareOfTheLimitIsRefundedWhileRedisIsUnavailable(t *testing.T) {
	_, l := unavailableLink(t)
	b := newLimiters(l, "all", fleet.Config{OnOutage: fleet.FailLocal, Share: 0.5},
		fleet.FixedWindow{Limit: 10, Window: time.Hour}, fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 6})
	take := func(n int) limiter.Result {
		r, err := b.Take(t.Context(), "user", n)
		require.NoError(t, err)
		return r.Result
	}
	require.True(t, take(1).OK)
	require.False(t, take(4).OK, "more than the share takes a full bucket")
	taken, err := b.Reserve(t.Context(), "user", 2)
	require.NoError(t, err)
	require.True(t, taken.OK, "a refusal by one limit takes nothing from another")
	refused := take(1)
	require.False(t, refused.OK)
	require.Zero(t, refused.Remaining)
	require.NoError(t, taken.Refund(t.Context(), 3))
	require.True(t, take(2).OK)
	require.False(t, take(1).OK)
	require.NoError(t, taken.Refund(t.Context(), 1), "all were given back")
	require.False(t, take(1).OK)
}

func TestARefusalOfAClosedPolicySaysWhenRedisIsCalledAgain(t *testing.T) {
	f, l := unavailableLink(t)
	b := newBucket(l, fleet.Config{OnOutage: fleet.FailClosed})
	for range 5 {
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, awayTimeout, r.RetryAfter)
	}
	f.commands()
	r, err := b.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.Greater(t, r.RetryAfter, 50*time.Second)
	require.Empty(t, f.commands())
}

func TestRedisDecidesAgainWhenItIsBack(t *testing.T) {
	f, l := unavailableLink(t)
	b := newLimiter(l, "window", fleet.FixedWindow{Limit: 10, Window: time.Second}, fleet.Config{OnOutage: fleet.FailOpen})
	for range 10 {
		_, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
	}
	require.True(t, l.Breaker().Tripped())
	f.setReply("evalsha", integerReply(1, 10, 9, 0, 100_000))
	l.Breaker().OpenFor(0)
	r, err := b.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.Equal(t, fleet.Result{Result: allowedResult(10, 9, 100*ms), From: fleet.FromServer}, r)
	require.Equal(t, fleet.FromServer, r.From)
}

func TestAServiceStartsWithoutRedis(t *testing.T) {
	f := newFakeServer(t, nil)
	c := f.client()
	f.setReply("info", "-LOADING Redis is loading the dataset in memory\r\n")
	l, err := fleet.Connect(t.Context(), "main", c, fleet.LinkConfig{})
	require.NoError(t, err)
	r, err := newBucket(l, fleet.Config{OnOutage: fleet.FailLocal, Share: 0.1}).Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.True(t, r.OK)
	require.Equal(t, fleet.FromOutage, r.From)
}

func TestValidateConfig(t *testing.T) {
	l := connect(t)
	one := []fleet.Limit{hourlyBucket}
	for want, c := range map[string]fleet.Config{
		"fleet: Share is 0, must be above 0 and at most 1":                                  {Link: l, Limits: one, OnOutage: fleet.FailLocal},
		"fleet: Share is 1.5, must be above 0 and at most 1":                                {Link: l, Limits: one, OnOutage: fleet.FailLocal, Share: 1.5},
		"fleet: Share is 0.5, must be 0 unless OnOutage is fail-local":                      {Link: l, Limits: one, OnOutage: fleet.FailOpen, Share: 0.5},
		"fleet: MaxKeys is -1, must lie between 1 and 2147483647 (or be 0 for the default)": {Link: l, Limits: one, OnOutage: fleet.FailOpen, MaxKeys: -1},
		"fleet: MaxWaiters is -1, must be at least 1 (or 0 for no bound)":                   {Link: l, Limits: one, OnOutage: fleet.FailOpen, MaxWaiters: -1},
		"fleet: Link is nil, must be given":                                                 {Limits: one, OnOutage: fleet.FailOpen},
		"fleet: Limits has 0, must have between 1 and 10":                                   {Link: l, OnOutage: fleet.FailOpen},
		"fleet: Limits has 11, must have between 1 and 10":                                  {Link: l, OnOutage: fleet.FailOpen, Limits: slices.Repeat(one, 11)},
		"fleet: Limits[1] is nil, must be given":                                            {Link: l, OnOutage: fleet.FailOpen, Limits: []fleet.Limit{hourlyBucket, nil}},
	} {
		require.EqualError(t, c.Validate(), want)
	}
	require.PanicsWithError(t, "fleet: the name is \"a}b\", must not be empty or have braces\n"+
		"fleet: Link is nil, must be given\nlimiter: Rate is unset, must be above 0\nfleet: OnOutage is \"\", must be fail-open, fail-closed, fail-local or fail-error",
		func() { fleet.NewLimiter("a}b", fleet.Config{Limits: []fleet.Limit{fleet.TokenBucket{}}}) })
}

func TestValidateLimits(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for want, l := range map[string]fleet.Limit{
		"limiter: Rate is unset, must be above 0":                                                                       fleet.TokenBucket{},
		"fleet: Rate is unlimited, must be finite":                                                                      fleet.TokenBucket{Rate: limiter.Unlimited()},
		"fleet: Burst is -1, must lie between 1 and 1099511627776 (or be 0 for the default)":                            fleet.TokenBucket{Rate: limiter.PerSecond(1), Burst: -1},
		"fleet: Burst is 100, must be refilled within 438000h0m0s at a Rate of 1/8760h":                                 fleet.TokenBucket{Rate: limiter.Per(1, year), Burst: 100},
		"fleet: Limit is 0, must lie between 1 and 2147483647":                                                          fleet.FixedWindow{Window: time.Second},
		"fleet: Window is 0s, must be whole microseconds between 1ms and 87600h0m0s":                                    fleet.FixedWindow{Limit: 1},
		"fleet: Window is 1.0000005s, must be whole microseconds between 1ms and 87600h0m0s":                            fleet.SlidingWindow{Limit: 1, Window: time.Second + 500},
		"fleet: Buckets is 1001, must lie between 1 and 1000 (or be 0 for the default)":                                 fleet.SlidingWindow{Limit: 1, Window: time.Second, Buckets: 1001},
		"fleet: the client is \"x}\", must have no braces":                                                              redisson.PerClient(fleet.SlidingLog{Limit: 1, Window: time.Second}, "x}"),
		"fleet: Count is 0, must be at least 1\nfleet: Period is 1.5s, must be whole seconds between 1s and 87600h0m0s": rediscell.Limit(0, 0, 1500*ms),
		"fleet: MaxBurst is -1, must lie between 0 and 1099511627775":                                                   rediscell.Limit(-1, 1, time.Second),
		"fleet: Count is 2000000000, must be at most one per nanosecond, 1000000000":                                    rediscell.Limit(0, 2_000_000_000, time.Second),
		"fleet: MaxBurst is 99, must be refilled within 438000h0m0s at 1 per 8760h0m0s":                                 rediscell.Limit(99, 1, year),
	} {
		require.EqualError(t, fleet.Check(l), want)
	}
}

func TestAShareOfAnyLimitIsKeptWhileRedisIsUnavailable(t *testing.T) {
	_, l := unavailableLink(t)
	for _, share := range []float64{1e-300, 1} {
		for _, limit := range []fleet.Limit{
			fleet.FixedWindow{Limit: math.MaxInt32, Window: time.Millisecond}, fleet.FixedWindow{Limit: 1, Window: time.Hour},
		} {
			b := newLimiter(l, "any", limit, fleet.Config{OnOutage: fleet.FailLocal, Share: share})
			r, err := b.Take(t.Context(), "user", 1)
			require.NoError(t, err)
			require.True(t, r.OK)
		}
	}
}

// Scenario L55.
func TestASlowRestartedAndForgetfulServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true})
	defer func() { require.NoError(t, c.Close()) }()
	b := newLimiter(connectTo(t, c, fleet.LinkConfig{Timeout: longTimeout}), "slow", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 10}, errorOnOutage)
	next := func(want int) {
		t.Helper()
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, want, r.Remaining)
	}
	next(9)
	proxy.Delay(500 * ms) // each way
	next(8)
	proxy.Delay(0)
	s.Do("SCRIPT", "FLUSH")
	next(7)
	s.Do("DEL", b.StateKeys("user")[0])
	next(9)
	s.Restart()
	proxy.Cut()
	require.Eventually(t, func() bool {
		r, err := b.Take(t.Context(), "user", 1)
		return err == nil && r.Remaining == 9
	}, longTimeout, 10*ms, "the first answer after a restart")
}

// Scenario L59.
// A server hangs: which policy decides, how long that takes, and what the server receives when it
// continues.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	const timeout, failures = 100 * ms, 5
	for policy, want := range map[fleet.OnOutage]int{fleet.FailOpen: 100, fleet.FailClosed: 0, fleet.FailLocal: 5, fleet.FailError: 0} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: timeout, Breaker: breaker.Config{Cooldown: 2 * time.Second}})
			c := fleet.Config{OnOutage: policy}
			if policy == fleet.FailLocal {
				c.Share = 0.5
			}
			b := newLimiter(l, "hangs", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 10}, c)
			// a call that a busy machine delays is a failure, too
			require.Eventually(t, func() bool {
				r, err := b.Take(t.Context(), "other", 0)
				return err == nil && r.From == fleet.FromServer
			}, 30*time.Second, 10*ms)
			before := requestCount(s)
			s.Pause()
			allowed := 0
			for i := range 100 {
				start := testenv.Running()
				r, err := b.Take(t.Context(), "user", 1)
				require.Less(t, testenv.Running()-start, timeout+timeoutSlack)
				require.Equal(t, policy == fleet.FailError, err != nil)
				if err == nil {
					require.Equal(t, fleet.FromOutage, r.From)
				}
				if r.OK {
					allowed++
				}
				require.Equal(t, i >= failures-1, l.Breaker().Tripped(), "after %d calls", i+1)
			}
			require.Equal(t, want, allowed)
			s.Continue()
			var r fleet.Result
			require.Eventually(t, func() bool {
				var err error
				r, err = b.Take(t.Context(), "user", 0)
				return err == nil && r.From == fleet.FromServer
			}, 30*time.Second, 10*ms)
			require.GreaterOrEqual(t, r.Remaining, 10-failures-2, "grants during the outage are not charged later")
			require.LessOrEqual(t, requestCount(s)-before, failures+20)
		})
	}
}

// Scenario L60.
func TestAnAnswerThatComesTooLate(t *testing.T) {
	t.Parallel()
	for name := range ofEachKind(connect(t), "names", time.Hour) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			proxy := redistest.NewProxy(t, s.Addr())
			c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true, MaxRetries: 5})
			defer func() { require.NoError(t, c.Close()) }()
			b := ofEachKind(connectTo(t, c, fleet.LinkConfig{Timeout: time.Second}), "late", time.Hour)[name]
			_, err := b.Take(t.Context(), "user", 1)
			require.NoError(t, err)
			before := requestCount(s)
			proxy.Swallow(false, true)
			_, err = b.Take(t.Context(), "user", 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, fleet.ErrUnavailable)
			proxy.Swallow(false, false)
			proxy.Cut()
			require.Equal(t, before+1, requestCount(s))
			var r fleet.Result
			require.Eventually(t, func() bool { r, err = b.Take(t.Context(), "user", 0); return err == nil }, longTimeout, 10*ms)
			require.Equal(t, 8, r.Remaining)
		})
	}
}
