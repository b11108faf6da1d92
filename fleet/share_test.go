package fleet_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// closedLink returns a link whose breaker lets no request through, so that the policy decides.
func closedLink(t *testing.T) *fleet.Link {
	t.Helper()
	l := connectTo(t, newFakeServer(t, nil).client(), fleet.LinkConfig{Timeout: awayTimeout})
	l.Breaker().Force(breaker.ForcedOpen, "")
	return l
}

// localNodes returns nodes whose shares are 1 in total.
func localNodes(l *fleet.Link, nodes int, limit fleet.Limit) (all []*fleet.Limiter) {
	c := fleet.Config{OnOutage: fleet.FailLocal, Share: 1 / float64(nodes)}
	for range nodes {
		all = append(all, newLimiter(l, "share", limit, c))
	}
	return all
}

func mustTake(t *testing.T, b *fleet.Limiter, key string, n int) fleet.Result {
	t.Helper()
	r, err := b.Take(t.Context(), key, n)
	require.NoError(t, err)
	require.Equal(t, fleet.FromOutage, r.From)
	return r
}

// Config.Share: in any span m nodes allow at most max(L, m·n), and what the rate yields, L.
func TestBoundOfFailLocalWithMoreNodesThanTokens(t *testing.T) {
	const limit, span = 10, time.Minute
	step := span / time.Duration(testenv.Repeat(100, 20))
	l := closedLink(t)
	for name, kind := range map[string]fleet.Limit{
		"log":     fleet.SlidingLog{Limit: limit, Window: span},
		"sliding": fleet.SlidingWindow{Limit: limit, Window: span},
		"fixed":   fleet.FixedWindow{Limit: limit, Window: span},
		"bucket":  fleet.TokenBucket{Rate: limiter.Per(limit, span), Burst: limit},
	} {
		for _, c := range []struct{ nodes, n int }{{1, 1}, {2, 1}, {4, 3}, {10, 1}, {100, 1}, {100, 7}} {
			t.Run(fmt.Sprintf("%s, %d nodes, %d tokens", name, c.nodes, c.n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					nodes := localNodes(l, c.nodes, kind)
					type taken struct {
						at time.Duration
						n  int
					}
					var all []taken
					for began := time.Now(); time.Since(began) < 3*span; time.Sleep(step) {
						for _, b := range nodes {
							for mustTake(t, b, "user", c.n).OK {
								all = append(all, taken{time.Since(began), c.n})
							}
						}
					}
					most, sum := 0, 0
					for i, first := 0, 0; i < len(all); i++ {
						for sum += all[i].n; all[i].at-all[first].at >= span; first++ {
							sum -= all[first].n
						}
						most = max(most, sum)
					}
					burst := max(limit, c.nodes*c.n)
					require.LessOrEqual(t, most, burst+limit)
					require.GreaterOrEqual(t, most, burst, "the bound is reached")
				})
			})
		}
	}
}

// A request for more than the share takes a full bucket, which then owes the rest: the long-run
// rate holds, and each RetryAfter is exact.
func TestRequestAboveTheShareIsOwed(t *testing.T) {
	l := closedLink(t)
	synctest.Test(t, func(t *testing.T) {
		// a share of 5 tokens, at 5 per second
		b := localNodes(l, 200, fleet.FixedWindow{Limit: 1000, Window: time.Second})[0]
		require.True(t, mustTake(t, b, "user", 10).OK)
		r := mustTake(t, b, "user", 1)
		require.False(t, r.OK)
		require.Equal(t, 1200*time.Millisecond, r.RetryAfter.Round(time.Microsecond), "5 are owed, and 1 is wanted")
		require.Equal(t, 2*time.Second, r.ResetAfter.Round(time.Microsecond))
		taken := 10
		for began := time.Now(); time.Since(began) < 100*time.Second; {
			r := mustTake(t, b, "user", 10)
			if r.OK {
				taken += 10
				continue
			}
			require.Less(t, r.RetryAfter, limiter.Never)
			time.Sleep(r.RetryAfter - time.Microsecond)
			require.False(t, mustTake(t, b, "user", 10).OK, "not sooner")
			time.Sleep(time.Microsecond)
			require.True(t, mustTake(t, b, "user", 10).OK, "RetryAfter is enough")
			taken += 10
		}
		require.InDelta(t, 10+5*100, taken, 20)
		require.Equal(t, limiter.Never, mustTake(t, b, "user", 1001).RetryAfter)
	})
}

// Config.ShareNew decides about keys beyond MaxKeys, and both the metric and the refusal say so.
func TestKeysBeyondMaxKeysDuringAnOutage(t *testing.T) {
	l := closedLink(t)
	for shareNew, want := range map[bool]struct{ allowed, noRoom int }{
		false: {100 * 2, 4900 * 3},
		true:  {100*2 + 2, 4900 * 3},
	} {
		t.Run(fmt.Sprint("shared ", shareNew), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newLimiter(l, "room", fleet.FixedWindow{Limit: 4, Window: time.Hour},
					fleet.Config{OnOutage: fleet.FailLocal, Share: 0.5, MaxKeys: 100, ShareNew: shareNew})
				allowed, last := 0, fleet.Result{}
				for i := range 5000 {
					for range 3 {
						if last = mustTake(t, b, fmt.Sprint(i), 1); last.OK {
							allowed++
						}
					}
				}
				require.Equal(t, want.allowed, allowed)
				require.EqualValues(t, want.noRoom, metricsOf(b)["weir.limiter.no_room"])
				require.False(t, mustTake(t, b, "0", 1).NoRoom, "lack of tokens")
				require.True(t, last.NoRoom)
				if !shareNew {
					require.Equal(t, awayTimeout, last.RetryAfter)
					err := waitWithin(t, b, time.Millisecond, "new", 1)
					require.ErrorContains(t, err, "limiter room: no room for the key: MaxKeys is 100 (limit 4)")
					require.ErrorIs(t, err, limiter.ErrLimited)
					_, err = weir.Join("gate", weir.Parts{Breaker: breaker.New("gate", breaker.Config{}), Remote: b.Get("new")}).Allow(t.Context())
					require.ErrorContains(t, err, "limiter gate: no room for the key: MaxKeys is 100 (limit 4)")
					require.EqualError(t, refusalOfPolicy(b), `weirhttp: policy "each" has no room for the key: MaxKeys is 100`)
				}
				time.Sleep(2 * time.Hour)
				require.True(t, mustTake(t, b, "new", 1).OK, "a full bucket makes room")
				require.False(t, mustTake(t, b, "new", 2).NoRoom)
			})
		})
	}
}

// refusalOfPolicy returns the error of a request whose policy asks b about the key "new".
func refusalOfPolicy(b *fleet.Limiter) (err error) {
	policy := weirhttp.Policy{Name: "each", By: func(*http.Request) string { return "new" }, Remote: b.Get}
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies:  []weirhttp.Policy{policy},
		OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { err = f.Err },
	})
	limit.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	return err
}

// The limit without room decides what is said, not one that has room or allows the request.
func TestNoRoomOfSeveralLimits(t *testing.T) {
	l := closedLink(t)
	synctest.Test(t, func(t *testing.T) {
		b := fleet.NewLimiter("both", fleet.Config{
			Link: l, OnOutage: fleet.FailLocal, Share: 1, MaxKeys: 1,
			Limits: []fleet.Limit{fleet.FixedWindow{Limit: 2, Window: time.Second}, fleet.FixedWindow{Limit: 3, Window: time.Hour}},
		})
		require.False(t, mustTake(t, b, "a", 2).NoRoom)
		time.Sleep(2 * time.Second) // the bucket of the first limit is full again, and makes room
		r := mustTake(t, b, "b", 1)
		require.False(t, r.OK)
		require.True(t, r.NoRoom)
		r = mustTake(t, b, "a", 2)
		require.False(t, r.OK)
		require.False(t, r.NoRoom)
	})
}

// A limiter is a package variable that is used with the real clock, and then in one bubble after
// the other. In each clock its share begins full.
func TestTheShareOfANodeStartsAgainWithEachClock(t *testing.T) {
	b := newLimiter(closedLink(t), "clocks", fleet.FixedWindow{Limit: 2, Window: time.Hour}, fleet.Config{OnOutage: fleet.FailLocal, Share: 1})
	use := func() {
		require.True(t, mustTake(t, b, "user", 2).OK)
		r := mustTake(t, b, "user", 1)
		require.False(t, r.OK)
		require.LessOrEqual(t, r.RetryAfter, 30*time.Minute)
	}
	use()
	for range 2 {
		synctest.Test(t, func(*testing.T) {
			use()
			time.Sleep(time.Hour)
			use()
		})
	}
	use()
}

func TestTheLimitOfALimiter(t *testing.T) {
	l := closedLink(t)
	bucket := fleet.TokenBucket{Rate: limiter.PerSecond(100), Burst: 25}
	for name, c := range map[string]struct {
		limits []fleet.Limit
		rate   limiter.Rate
		burst  int
	}{
		"a bucket": {[]fleet.Limit{bucket}, limiter.PerSecond(100), 25},
		"a window": {[]fleet.Limit{fleet.SlidingWindow{Limit: 5, Window: time.Minute}}, limiter.PerMinute(5), 5},
		"several":  {[]fleet.Limit{bucket, fleet.FixedWindow{Limit: 1000, Window: 24 * time.Hour}}, limiter.Per(1000, 24*time.Hour), 1000},
	} {
		rate, burst := fleet.NewLimiter("l", fleet.Config{Link: l, OnOutage: fleet.FailOpen, Limits: c.limits}).Limit()
		require.Equal(t, c.rate, rate, name)
		require.Equal(t, c.burst, burst, name)
	}
}
