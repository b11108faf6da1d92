package weirhttp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func policyPerWindow(n int, window time.Duration, by func(*http.Request) string) weirhttp.Policy {
	return weirhttp.Policy{Name: "window", Limit: n, Window: window, By: by}
}

// mostInWindow returns the largest number of moments in any half-open window.
func mostInWindow(moments []time.Time, window time.Duration) (n int) {
	for first, last := 0, 0; last < len(moments); last++ {
		for moments[last].Sub(moments[first]) >= window {
			first++
		}
		n = max(n, last-first+1)
	}
	return n
}

func TestWindowAllowsNoMoreThanItsLimitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerWindow(10, time.Minute, weirhttp.ByIP)}}).Handler(okHandler)
		passed := 0
		for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(100 * time.Millisecond) {
			if (request{}).send(h).Code == http.StatusOK {
				passed++
			}
		}
		require.Equal(t, 10, passed)
		require.Equal(t, 200, request{}.send(h).Code, "requests of a minute ago no longer count")
	})
}

// At most Limit requests are allowed in any Window. None is refused if fewer were allowed in the
// last window plus 1/16, the error of rounding. Up to a limit of 16 there is no rounding.
func TestNoWindowHasMoreThanLimitRequests(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		limit := []int{1, 2, 7, 16, 17, 40, 300}[rng.IntN(7)]
		window := []time.Duration{time.Millisecond, time.Second, time.Minute, 24 * time.Hour}[rng.IntN(4)]
		rounding := time.Duration(0)
		if limit > 16 {
			rounding = window / 16
		}
		t.Run(fmt.Sprintf("%d of %d in %v", seed, limit, window), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerWindow(limit, window, byAPIKey)}}).Handler(okHandler)
				passed := map[string][]time.Time{}
				pause := window / time.Duration(limit)
				for range 6 * limit {
					key := strconv.Itoa(rng.IntN(2))
					w, now := request{key: key}.send(h), time.Now()
					if w.Code == http.StatusOK {
						passed[key] = append(passed[key], now)
					} else {
						recent := slices.DeleteFunc(slices.Clone(passed[key]), func(at time.Time) bool { return now.Sub(at) >= window+rounding })
						require.GreaterOrEqual(t, len(recent), limit, "a request within the limit was refused")
						wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
						require.NoError(t, err)
						require.LessOrEqual(t, time.Duration(wait)*time.Second, window+rounding+time.Second)
						if rng.IntN(4) == 0 {
							time.Sleep(time.Duration(wait) * time.Second)
							require.Equal(t, http.StatusOK, request{key: key}.send(h).Code, "the request is allowed after Retry-After")
							passed[key] = append(passed[key], time.Now())
						}
					}
					switch rng.IntN(8) {
					case 0:
						time.Sleep(time.Duration(rng.Int64N(int64(window))))
					case 1, 2:
						time.Sleep(time.Duration(rng.Int64N(int64(pause) + 1)))
					case 3:
						time.Sleep(pause)
					}
				}
				for key, moments := range passed {
					require.LessOrEqual(t, mostInWindow(moments, window), limit, key)
				}
			})
		})
	}
}

// Also with several costs, with charges, and with limits that change, no window has more than Limit
// requests.
func TestWindowsKeepTheirLimitWithCostsAndCharges(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			cost, limit := 1, 20
			config := func() weirhttp.LimitConfig {
				return weirhttp.LimitConfig{
					Policies: []weirhttp.Policy{
						policyPerWindow(limit, time.Minute, weirhttp.ByIP),
						{Name: "bucket", Rate: limiter.PerSecond(1), Burst: 10, By: weirhttp.ByIP},
						{Name: "day", Limit: 5000, Window: 24 * time.Hour, By: weirhttp.ByIP},
					},
					Cost: func(*http.Request) int { return cost },
				}
			}
			l := weirhttp.NewLimit(config())
			var taken []time.Time
			h := l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if rng.IntN(8) == 0 {
					l.Charge(r, 3) // may take less, which this test does not count
				}
				for range cost {
					taken = append(taken, time.Now())
				}
			}))
			for range 400 {
				cost = 1 + rng.IntN(4)
				request{}.send(h)
				if rng.IntN(50) == 0 {
					limit = 5 + rng.IntN(16)
					require.NoError(t, l.Reconfigure(config()))
				}
				time.Sleep(time.Duration(rng.Int64N(int64(5 * time.Second))))
			}
			require.LessOrEqual(t, mostInWindow(taken, time.Minute), 20, "the highest of all limits")
			require.Greater(t, len(taken), 50)
		})
	}
}

func TestHeadersOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{
			Policies: []weirhttp.Policy{policyPerWindow(3, time.Minute, weirhttp.ByIP)}, Legacy: true,
		}).Handler(okHandler)
		for _, step := range []struct {
			wait                time.Duration
			code                int
			limit, retry, reset string
		}{
			{0, 200, `"window";r=2;t=60`, "", "60"},
			{10 * time.Second, 200, `"window";r=1;t=50`, "", "60"},
			{45 * time.Second, 200, `"window";r=0;t=5`, "", "60"},
			{0, 429, `"window";r=0;t=5`, "5", "60"},
			{4500 * time.Millisecond, 429, `"window";r=0;t=1`, "1", "56"},
			{500 * time.Millisecond, 200, `"window";r=0;t=10`, "", "60"},
			{time.Hour, 200, `"window";r=2;t=60`, "", "60"},
		} {
			time.Sleep(step.wait)
			w := request{}.send(h)
			require.Equal(t, step.code, w.Code)
			require.Equal(t, `"window";q=3;w=60`, w.Header().Get("RateLimit-Policy"))
			require.Equal(t, step.limit, w.Header().Get("RateLimit"))
			require.Equal(t, step.retry, w.Header().Get("Retry-After"))
			require.Equal(t, step.reset, w.Header().Get("X-RateLimit-Reset"))
		}
	})
}

func TestFloodOfKeysInAWindow(t *testing.T) {
	for _, shareNew := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			policy := policyPerWindow(1, time.Hour, byAPIKey)
			policy.MaxKeys, policy.ShareNew = 1000, shareNew
			l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
			h := l.Handler(okHandler)
			require.Equal(t, 200, request{key: "first"}.send(h).Code)
			for i := range 5000 {
				request{key: "flood" + strconv.Itoa(i)}.send(h)
			}
			require.Equal(t, 429, request{key: "first"}.send(h).Code, "the quota is still used up")
			require.Equal(t, 429, request{key: "stranger"}.send(h).Code, shareNew)
			if !shareNew {
				require.Equal(t, 200, request{key: "stranger", from: "203.0.113.9:1"}.send(h).Code, "a client of another network")
				require.InDelta(t, 2, readMetrics(l)["group.size window by network"], 0)
			}
			require.InDelta(t, 1000, readMetrics(l)["group.size window"], 0)

			time.Sleep(time.Hour)
			require.Equal(t, 200, request{key: "new"}.send(h).Code, "all keys are idle, so there is room")
			require.Positive(t, readMetrics(l)["evictions window"])
		})
	}
}

func TestMetricsOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerWindow(2, time.Minute, weirhttp.ByIP)}})
		for range 5 {
			request{}.send(l.Handler(okHandler))
		}
		all := readMetrics(l)
		require.Equal(t, [3]float64{2, 3, 0}, requestCounts(l, "window"))
		require.Equal(t, [4]float64{1, 0, 2, 60}, [4]float64{all["group.size window"], all["evictions window"], all["limit window"], all["period window"]})
		bucket := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "window", Rate: limiter.PerMinute(2), By: weirhttp.ByIP}}})
		for line := range readMetrics(bucket) {
			require.Contains(t, all, line, "both forms have the same series")
		}
		require.Len(t, readMetrics(bucket), len(all))
	})
}

func TestReconfigureOfAWindow(t *testing.T) {
	first := policyPerWindow(4, time.Minute, weirhttp.ByIP)
	with := func(change func(*weirhttp.Policy)) weirhttp.Policy {
		p := first
		change(&p)
		return p
	}
	for what, c := range map[string]struct {
		next weirhttp.Policy
		want string // RateLimit after three requests and one more
	}{
		"the same":        {first, `"window";r=0`},
		"a higher limit":  {with(func(p *weirhttp.Policy) { p.Limit = 20 }), `"window";r=16`},
		"a lower limit":   {with(func(p *weirhttp.Policy) { p.Limit = 2 }), `"window";r=0`},
		"another window":  {with(func(p *weirhttp.Policy) { p.Window = time.Hour }), `"window";r=3`},
		"a bucket":        {with(func(p *weirhttp.Policy) { p.Limit, p.Window, p.Rate, p.Burst = 0, 0, limiter.PerSecond(1), 9 }), `"window";r=8`},
		"more keys":       {with(func(p *weirhttp.Policy) { p.MaxKeys = 5 }), `"window";r=3`},
		"another room":    {with(func(p *weirhttp.Policy) { p.ShareNew = true }), `"window";r=3`},
		"another handler": {with(func(p *weirhttp.Policy) { p.When = func(*http.Request) bool { return true } }), `"window";r=0`},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{first}})
			h := l.Handler(okHandler)
			for range 3 {
				require.Equal(t, 200, request{}.send(h).Code)
			}
			require.NoError(t, l.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{c.next}}))
			require.Equal(t, c.want, withoutTimes(request{}.send(h).Header().Get("RateLimit")), what)
		})
	}
}

func TestReconfigureOfAShadowWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := policyPerWindow(2, time.Minute, weirhttp.ByIP)
		policy.Shadow = true
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
		for range 5 {
			w := request{}.send(l.Handler(okHandler))
			require.Equal(t, 200, w.Code)
			require.Empty(t, w.Header().Get("RateLimit"))
		}
		require.Equal(t, [3]float64{2, 0, 3}, requestCounts(l, "window"))
		policy.Shadow = false
		require.NoError(t, l.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}))
		require.Equal(t, 429, request{}.send(l.Handler(okHandler)).Code, "requests in shadow mode are taken from the quota")
	})
}

// A limit in a package variable is made on the real clock. If it is used in a bubble, the clock is
// years behind.
func TestLimitFromOutsideABubble(t *testing.T) {
	early := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerWindow(3, time.Hour, weirhttp.ByIP)}})
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			for i := range 5 {
				require.Equal(t, i < 3, request{}.send(early.Handler(okHandler)).Code == 200)
			}
			time.Sleep(time.Hour)
		}
	})
}
