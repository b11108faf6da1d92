package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/limiter"
)

// tenant returns the part of a key before the slash.
func tenant(key string) string {
	tenant, _, _ := strings.Cut(key, "/")
	return tenant
}

// sharedLinks returns links to one server and to several.
func sharedLinks(t *testing.T) map[string]*fleet.Link {
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": redistest.Start(t).Addr(), "b": redistest.Start(t).Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	c := fleet.LinkConfig{Timeout: patient, Prefix: prefix(t)}
	return map[string]*fleet.Link{
		"one server": connect(t), "a Cluster": connectTo(t, dialCluster(t, cluster().Addrs()...), c), "a Ring": connectTo(t, ring, c),
	}
}

// grant is what was taken of a key in the model.
type grant struct {
	key string
	at  time.Duration
	n   int
}

// grantList is a model of Shared limits: a list of grants.
type grantList struct {
	span   time.Duration
	limits []int
	by     []func(string) string
	grants []grant
}

// used returns what one of the limits counts for a key.
func (l *grantList) used(i int, key string, at time.Duration) (sum int) {
	for _, g := range l.grants {
		if l.by[i](g.key) == l.by[i](key) && g.at > at-l.span {
			sum += g.n
		}
	}
	return sum
}

// fits reports whether all limits allow n at a time.
func (l *grantList) fits(key string, at time.Duration, n int) bool {
	for i := range l.limits {
		if l.used(i, key, at)+n > l.limits[i] {
			return false
		}
	}
	return true
}

// soonest returns how long it takes until n fit.
func (l *grantList) soonest(key string, at time.Duration, n int) time.Duration {
	for i := range l.limits {
		if n > l.limits[i] {
			return limiter.Never
		}
	}
	best := limiter.Never
	for _, g := range append(l.grants, grant{at: at - l.span}) {
		if wait := g.at + l.span - at; wait >= 0 && wait < best && l.fits(key, at+wait, n) {
			best = wait
		}
	}
	return best
}

// Random requests of users of tenants at given times are decided as by a simple list of grants, on
// one server and on several. A refused request takes from no limit, RetryAfter is the shortest
// possible, and Remaining is the least.
func TestSharedLimitsMatchModel(t *testing.T) {
	for name, link := range sharedLinks(t) {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(17, 4))
			oracle := grantList{
				span: time.Second, limits: []int{5, 9, 14},
				by: []func(string) string{func(key string) string { return key }, tenant, func(string) string { return "" }},
			}
			b := newLimiters(link, "ledger", orError, fleet.SlidingLog{Limit: 5, Window: time.Second},
				fleet.Shared{By: tenant, Limit: fleet.SlidingLog{Limit: 9, Window: time.Second}},
				fleet.Shared{Limit: fleet.SlidingLog{Limit: 14, Window: time.Second}})
			refused := [4]int{}
			for at, step := time.Duration(0), 0; step < 1500; step++ {
				at += time.Duration(random.Int64N(int64(80 * ms))).Truncate(time.Microsecond)
				key := fmt.Sprintf("t%d/u%d", random.IntN(3), random.IntN(3))
				n := random.IntN(4)
				r, err := b.TakeAt(t.Context(), begin.Add(at), key, n)
				require.NoError(t, err)
				fits := oracle.fits(key, at, n)
				require.Equal(t, fits, r.OK, "step %d: Take(%s, %d)", step, key, n)
				if !fits {
					require.Equal(t, oracle.soonest(key, at, n), r.RetryAfter, "step %d: Take(%s, %d)", step, key, n)
				} else if n > 0 {
					oracle.grants = append(oracle.grants, grant{key, at, n})
				}
				left := 100
				for i, limit := range oracle.limits {
					left = min(left, limit-oracle.used(i, key, at))
					if !fits && oracle.used(i, key, at)+n > limit {
						refused[i]++
					}
				}
				require.Equal(t, left, r.Remaining, "step %d: after Take(%s, %d)", step, key, n)
			}
			for i := range oracle.limits {
				require.Greater(t, refused[i], 50, "limit %d was hardly tested", i)
			}
		})
	}
}

// Each limit has its own Redis key, whatever the users' keys are.
func TestSharedLimitsHaveTheirOwnRedisKeys(t *testing.T) {
	for name, link := range sharedLinks(t) {
		b := newLimiters(link, "meet", orError, fleet.FixedWindow{Limit: 1, Window: 24 * 365 * time.Hour},
			fleet.Shared{By: func(string) string { return "user" }, Limit: fleet.FixedWindow{Limit: 2, Window: 24 * 365 * time.Hour}})
		for key, ok := range map[string]bool{"": true, "user": true} {
			r, err := b.Take(t.Context(), key, 1)
			require.NoError(t, err)
			require.Equal(t, ok, r.OK, "%s: %q", name, key)
		}
		r, err := b.Take(t.Context(), "another", 1)
		require.NoError(t, err)
		require.False(t, r.OK, name)
	}
}

// With many callers and keys, no limit is exceeded, and refused requests have left nothing behind
// in the end.
func TestSharedLimitsHoldUnderLoad(t *testing.T) {
	const users, each, tenants, everybody = 12, 30, 100, 150
	for name, link := range sharedLinks(t) {
		t.Run(name, func(t *testing.T) {
			const year = 24 * 365 * time.Hour
			b := newLimiters(link, "load", fleet.Config{OnOutage: fleet.FailError, MaxDenied: fleet.Off},
				fleet.TokenBucket{Rate: limiter.Every(year), Burst: each},
				fleet.Shared{By: tenant, Limit: fleet.SlidingLog{Limit: tenants, Window: year}},
				fleet.Shared{Limit: fleet.FixedWindow{Limit: everybody, Window: year}})
			var granted [users]atomic.Int64
			var g sync.WaitGroup
			for i := range users {
				key := fmt.Sprintf("t%d/u%d", i%3, i)
				for range 3 {
					g.Go(func() {
						for n := range 25 {
							r, err := b.Take(t.Context(), key, 1+n%2)
							if err != nil {
								t.Error(err)
								return
							}
							if r.OK {
								granted[i].Add(int64(1 + n%2))
							}
						}
					})
				}
			}
			g.Wait()
			all, of := int64(0), [3]int64{}
			for i := range users {
				n := granted[i].Load()
				require.LessOrEqual(t, n, int64(each))
				of[i%3] += n
				all += n
			}
			require.LessOrEqual(t, all, int64(everybody))
			for i := range users {
				left, err := b.TakeEach(t.Context(), fmt.Sprintf("t%d/u%d", i%3, i), 0)
				require.NoError(t, err)
				require.LessOrEqual(t, of[i%3], int64(tenants))
				require.Equal(t, [3]int64{each - granted[i].Load(), tenants - of[i%3], everybody - all},
					[3]int64{int64(left[0].Remaining), int64(left[1].Remaining), int64(left[2].Remaining)}, "what was refused has been given back")
			}
			require.Greater(t, all, int64(everybody-10))
		})
	}
}

func TestRefundReachesAllLimitsAndResetOnlyThoseOfTheKey(t *testing.T) {
	for name, link := range sharedLinks(t) {
		b := newLimiters(link, "back", orError, fleet.FixedWindow{Limit: 10, Window: 24 * 365 * time.Hour},
			fleet.Shared{Limit: fleet.FixedWindow{Limit: 15, Window: 24 * 365 * time.Hour}})
		left := func(key string) [2]int {
			each, err := b.TakeEach(t.Context(), key, 0)
			require.NoError(t, err)
			return [2]int{each[0].Remaining, each[1].Remaining}
		}
		for _, key := range []string{"a", "b"} {
			r, err := b.Take(t.Context(), key, 7)
			require.NoError(t, err)
			require.True(t, r.OK, name)
		}
		require.Equal(t, [2]int{3, 1}, left("a"), name)
		require.NoError(t, b.Refund(t.Context(), "a", 2))
		require.Equal(t, [2]int{5, 3}, left("a"), name)
		require.NoError(t, b.Reset(t.Context(), "a"))
		require.Equal(t, [2]int{10, 3}, left("a"), name)
		require.Equal(t, [2]int{3, 3}, left("b"), name)
	}
	alone := newLimiter(connect(t), "alone", fleet.Shared{Limit: hourly}, orError)
	require.EqualError(t, alone.Reset(t.Context(), "a"), `fleet: limiter "alone" has nothing to reset: its limits are Shared`)
}

// Another key may take tokens that one key gives back. Remembered refusals are forgotten, and
// waiters are woken.
func TestRefundOfASharedLimitReachesOtherKeys(t *testing.T) {
	for name, link := range sharedLinks(t) {
		b := newLimiters(link, "wake", orError, fleet.TokenBucket{Rate: limiter.PerHour(1), Burst: 5},
			fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.PerHour(1), Burst: 4}})
		for _, want := range []struct {
			key  string
			n    int
			ok   bool
			from string
		}{
			{"a", 4, true, fleet.FromServer}, {"b", 1, false, fleet.FromServer}, {"b", 1, false, fleet.FromDenyCache},
		} {
			r, err := b.Take(t.Context(), want.key, want.n)
			require.NoError(t, err)
			require.Equal(t, [2]any{want.ok, want.from}, [2]any{r.OK, r.From}, "%s: %+v", name, want)
		}
		require.NoError(t, b.Refund(t.Context(), "a", 1))
		r, err := b.Take(t.Context(), "b", 1)
		require.NoError(t, err)
		require.True(t, r.OK, name)

		waits := make(chan error, 1)
		go func() { waits <- b.Wait(t.Context(), "c", 1) }()
		require.Never(t, func() bool { return len(waits) > 0 }, 50*ms, 10*ms, name)
		require.NoError(t, b.Refund(t.Context(), "a", 1))
		select {
		case err := <-waits:
			require.NoError(t, err, name)
		case <-time.After(patient):
			t.Fatal("the waiter was not woken: " + name)
		}
		require.ErrorIs(t, b.WaitAtMost(t.Context(), "d", 1, time.Minute), limiter.ErrLimited, name)
		left, err := b.TakeEach(t.Context(), "d", 0)
		require.NoError(t, err)
		require.Equal(t, [2]int{5, 0}, [2]int{left[0].Remaining, left[1].Remaining}, "%s: a wait that fails takes nothing", name)
	}
}

func TestValidateSharedLimits(t *testing.T) {
	l := connect(t)
	for want, c := range map[string]fleet.Config{
		"fleet: Limit of a Shared is nil, must be given":                        {Limits: []fleet.Limit{fleet.Shared{}}},
		"fleet: Limit of a Shared is a Shared, must be a limit of another kind": {Limits: []fleet.Limit{fleet.Shared{Limit: fleet.Shared{Limit: hourly}}}},
		"fleet: Limit is 0, must lie between 1 and 2147483647":                  {Limits: []fleet.Limit{fleet.Shared{Limit: fleet.FixedWindow{Window: time.Second}}}},
		"fleet: MaxLease is 10, must be 0 if Limits[1] is Shared":               {Limits: []fleet.Limit{hourly, fleet.Shared{Limit: hourly}}, MaxLease: 10},
	} {
		c.Link, c.OnOutage = l, fleet.FailOpen
		require.EqualError(t, c.Validate(), want)
	}
}

// splitKey returns a key that is, or is not, on the server of the limit for all keys.
func splitKey(t *testing.T, ring *redis.Ring, name string, same bool) string {
	t.Helper()
	shard := func(tag string) string {
		client, err := ring.GetShardClientForKey(prefix(t) + name + ":{" + tag + "}")
		require.NoError(t, err)
		return client.Options().Addr
	}
	for {
		if key := newKey(); (shard(key) == shard("%")) == same {
			return key
		}
	}
}

// twoServers is a Ring of two servers. One has the limit for all keys, and the other has a key.
type twoServers struct {
	link      *fleet.Link
	everybody *redistest.Server
	other     *redistest.Server
	key       string
	ring      *redis.Ring
}

func newTwoServers(t *testing.T, name string, timeout time.Duration) twoServers {
	a, b := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": a.Addr(), "b": b.Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	two := twoServers{everybody: a, other: b, ring: ring}
	two.link = connectTo(t, ring, fleet.LinkConfig{Timeout: timeout, Prefix: prefix(t)})
	client, err := ring.GetShardClientForKey(prefix(t) + name + ":{%}")
	require.NoError(t, err)
	if client.Options().Addr == b.Addr() {
		two.everybody, two.other = b, a
	}
	two.key = splitKey(t, ring, name, false)
	return two
}

// An unavailable server affects only its own limits: the policy decides about those, and Redis
// about the others.
func TestPolicyDecidesOnlyAboutTheUnavailableSharedLimit(t *testing.T) {
	t.Parallel()
	own, all := fleet.FixedWindow{Limit: 6, Window: 24 * 365 * time.Hour}, fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}}
	for policy, admitted := range map[fleet.OnOutage]int{fleet.FailOpen: 6, fleet.FailClosed: 0, fleet.FailLocal: 2, fleet.FailError: 0} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			two := newTwoServers(t, "stand-in", time.Second)
			c := fleet.Config{OnOutage: policy, MaxDenied: fleet.Off}
			if policy == fleet.FailLocal {
				c.Share = 0.5
			}
			b := newLimiters(two.link, "stand-in", c, own, all)
			two.everybody.Pause()
			defer two.everybody.Continue()
			granted := 0
			for range 10 {
				r, err := b.Take(t.Context(), two.key, 1)
				require.Equal(t, policy == fleet.FailError, err != nil, "%v", err)
				if err != nil {
					require.ErrorIs(t, err, fleet.ErrUnavailable)
					continue
				}
				require.Equal(t, fleet.FromOutage, r.From)
				if r.OK {
					granted++
				}
			}
			require.Equal(t, admitted, granted)
			require.Equal(t, []string{two.everybody.Addr()}, openOf(two.link))
			if each, err := b.TakeEach(t.Context(), two.key, 1); policy != fleet.FailError {
				require.NoError(t, err)
				require.Equal(t, [2]string{fleet.FromServer, fleet.FromOutage}, [2]string{each[0].From, each[1].From})
				if each[0].OK && each[1].OK {
					granted++
				}
			}
			two.everybody.Continue()
			require.Eventually(t, func() bool {
				each, err := b.TakeEach(t.Context(), two.key, 0)
				return err == nil && each[0].From == fleet.FromServer && each[0].Remaining == 6-granted
			}, patient, 20*ms, "what was refused has been given back")
		})
	}
}

// If the key's own server is unavailable, the limit for all keys still holds.
func TestTheSharedLimitHoldsWhileTheKeysOwnServerIsUnavailable(t *testing.T) {
	t.Parallel()
	two := newTwoServers(t, "held", time.Second)
	b := newLimiters(two.link, "held", fleet.Config{OnOutage: fleet.FailOpen, MaxDenied: fleet.Off}, fleet.FixedWindow{Limit: 6, Window: time.Hour},
		fleet.Shared{Limit: fleet.SlidingLog{Limit: 4, Window: time.Hour}})
	two.other.Kill()
	granted := 0
	for range 10 {
		r, err := b.Take(t.Context(), two.key, 1)
		require.NoError(t, err)
		if r.OK {
			granted++
		}
	}
	require.Equal(t, 4, granted)
}

// beforeSend is a hook that calls a function before a command is sent.
type beforeSend struct {
	redis.Hook
	call func(cmd redis.Cmder)
}

func (d beforeSend) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d beforeSend) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { d.call(cmd); return next(ctx, cmd) }
}

func (d beforeSend) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The key's own server fails between its grant and the refusal by the limit for all keys. The
// request is refused, and only its own tokens stay taken, because they cannot be given back.
func TestServerFailureBetweenTwoGroupsLosesOneRequest(t *testing.T) {
	t.Parallel()
	two := newTwoServers(t, "between", 2*time.Second)
	b := newLimiters(two.link, "between", fleet.Config{OnOutage: fleet.FailOpen, MaxDenied: fleet.Off}, fleet.FixedWindow{Limit: 10, Window: 24 * 365 * time.Hour},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}})
	all, err := two.ring.GetShardClientForKey(prefix(t) + "between:{%}")
	require.NoError(t, err)
	neighbour := splitKey(t, two.ring, "between", true)
	_, err = b.Take(t.Context(), two.key, 0) // the servers know the script from now on
	require.NoError(t, err)
	var asked atomic.Int64
	all.AddHook(beforeSend{call: func(redis.Cmder) {
		if asked.Add(1) == 2 { // it has been looked at; now it is to be taken from
			two.other.Pause()
			r, err := b.Take(t.Context(), neighbour, 4)
			require.NoError(t, err)
			require.True(t, r.OK)
		}
	}})
	defer two.other.Continue()
	r, err := b.Take(t.Context(), two.key, 3)
	require.NoError(t, err)
	require.False(t, r.OK, "refused by the limit for all keys, which has answered")
	require.Equal(t, fleet.FromServer, r.From)
	two.other.Continue()
	require.Eventually(t, func() bool {
		each, err := b.TakeEach(t.Context(), two.key, 0)
		require.NoError(t, err)
		left := each[0].Remaining // 7 where the refund was lost, 10 where it arrived after all
		return each[0].From == fleet.FromServer && (left == 7 || left == 10) && each[1].Remaining == 0
	}, patient, 20*ms)
}

// Tokens that are given back have been refused to other requests meanwhile. Those refusals are not
// remembered.
func TestRefusalIsNotRememberedAfterAnUndoneGrant(t *testing.T) {
	two := newTwoServers(t, "lasting", patient)
	b := newLimiters(two.link, "lasting", orError, fleet.FixedWindow{Limit: 5, Window: 24 * 365 * time.Hour},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}})
	all, err := two.ring.GetShardClientForKey(prefix(t) + "lasting:{%}")
	require.NoError(t, err)
	neighbour := splitKey(t, two.ring, "lasting", true)
	_, err = b.Take(t.Context(), two.key, 0) // the servers know the script from now on
	require.NoError(t, err)
	requireTake := func(key string, n int, ok bool, from string) {
		t.Helper()
		r, err := b.Take(t.Context(), key, n)
		require.NoError(t, err)
		require.Equal(t, [2]any{ok, from}, [2]any{r.OK, r.From})
	}
	var asked atomic.Int64
	all.AddHook(beforeSend{call: func(redis.Cmder) {
		if asked.Add(1) == 2 { // it has been looked at, and 3 of the key's own 5 are taken
			requireTake(two.key, 3, false, fleet.FromServer)
			requireTake(two.key, 3, false, fleet.FromDenyCache)
			requireTake(neighbour, 2, true, fleet.FromServer)
		}
	}})
	requireTake(two.key, 3, false, fleet.FromServer)
	requireTake(two.key, 4, false, fleet.FromServer)
	each, err := b.TakeEach(t.Context(), two.key, 0)
	require.NoError(t, err)
	require.Equal(t, [2]int{5, 2}, [2]int{each[0].Remaining, each[1].Remaining})
}

// A caller that gives up between two servers leaves nothing behind.
func TestCancellationBetweenTwoGroupsTakesNothing(t *testing.T) {
	two := newTwoServers(t, "gives-up", patient)
	b := newLimiters(two.link, "gives-up", orError, fleet.FixedWindow{Limit: 10, Window: 24 * 365 * time.Hour},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: 24 * 365 * time.Hour}})
	ctx, giveUp := context.WithCancel(t.Context())
	own, err := two.ring.GetShardClientForKey(prefix(t) + "gives-up:{" + two.key + "}")
	require.NoError(t, err)
	_, err = b.Take(t.Context(), two.key, 0)
	require.NoError(t, err)
	own.AddHook(beforeSend{call: func(redis.Cmder) { giveUp() }})
	_, err = b.Take(ctx, two.key, 3)
	require.ErrorIs(t, err, context.Canceled)
	each, err := b.TakeEach(t.Context(), two.key, 0)
	require.NoError(t, err)
	require.Equal(t, [2]int{10, 4}, [2]int{each[0].Remaining, each[1].Remaining})
}

// A request takes from the limit of its tenant and gives that back, because the limit for all keys
// refuses. A caller that was told meanwhile to wait for a year is woken.
func TestWaiterIsWokenAfterAnUndoneGrant(t *testing.T) {
	const year = 24 * 365 * time.Hour
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": redistest.Start(t).Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	b := newLimiters(connectTo(t, ring, fleet.LinkConfig{Timeout: patient, Prefix: prefix(t)}), "woken", orError,
		fleet.FixedWindow{Limit: 10, Window: year},
		fleet.Shared{By: tenant, Limit: fleet.FixedWindow{Limit: 4, Window: year}},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 4, Window: year}})
	_, err := b.Take(t.Context(), "one/a", 0) // the server knows the scripts from now on
	require.NoError(t, err)
	shard, err := ring.GetShardClientForKey("any")
	require.NoError(t, err)
	var asked atomic.Int64
	waits := make(chan error, 1)
	shard.AddHook(beforeSend{call: func(cmd redis.Cmder) {
		if !strings.Contains(fmt.Sprint(cmd.Args()...), "woken:{%}") || asked.Add(1) != 2 {
			return
		}
		// It has been looked at, and 3 of the tenant's 4 are taken.
		go func() { waits <- b.Wait(t.Context(), "one/b", 2) }()
		require.Never(t, func() bool { return len(waits) > 0 }, 100*ms, 10*ms)
		r, err := b.Take(t.Context(), "two/c", 2)
		require.NoError(t, err)
		require.True(t, r.OK)
	}})
	r, err := b.Take(t.Context(), "one/a", 3)
	require.NoError(t, err)
	require.False(t, r.OK)
	select {
	case err := <-waits:
		require.NoError(t, err)
	case <-time.After(patient):
		t.Fatal("the waiter was not woken")
	}
	each, err := b.TakeEach(t.Context(), "one/b", 0)
	require.NoError(t, err)
	require.Equal(t, [3]int{8, 2, 0}, [3]int{each[0].Remaining, each[1].Remaining, each[2].Remaining})
}
