package weirhttp_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func TestReconfigureKeepsQuotas(t *testing.T) {
	changed := func(p weirhttp.Policy, change func(*weirhttp.Policy)) []weirhttp.Policy {
		change(&p)
		return []weirhttp.Policy{p}
	}
	first := policyPerMinute(10, weirhttp.ByIP)
	for _, c := range []struct {
		what string
		next []weirhttp.Policy
		want string // RateLimit after one more request
	}{
		{"the same", []weirhttp.Policy{first}, `"minute";r=5`},
		{"a higher limit keeps what is there", changed(first, func(p *weirhttp.Policy) { p.Rate, p.Burst = limiter.PerMinute(20), 20 }), `"minute";r=5`},
		{"a lower limit", changed(first, func(p *weirhttp.Policy) { p.Rate, p.Burst = limiter.PerMinute(3), 3 }), `"minute";r=2`},
		{"the default of MaxKeys written out", changed(first, func(p *weirhttp.Policy) { p.MaxKeys = 100_000 }), `"minute";r=5`},
		{"another selection", changed(first, func(p *weirhttp.Policy) { p.When = func(*http.Request) bool { return true } }), `"minute";r=5`},
		{"other keys begin full", changed(first, func(p *weirhttp.Policy) { p.By = weirhttp.ByNothing }), `"minute";r=9`},
		{"the same key by another function", changed(first, func(p *weirhttp.Policy) { p.By = func(*http.Request) string { return "192.0.2.1" } }), `"minute";r=5`},
		{"another name begins full", changed(first, func(p *weirhttp.Policy) { p.Name = "new" }), `"new";r=9`},
		{"another unit begins full", changed(first, func(p *weirhttp.Policy) { p.Unit = "tokens" }), `"minute";r=9`},
		{"one more", []weirhttp.Policy{first, policyPerSecond(10, weirhttp.ByNothing)}, `"minute";r=5, "second";r=9`},
		{"none", nil, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{first}})
				h := l.Handler(okHandler)
				for range 4 {
					require.Equal(t, 200, request{}.send(h).Code)
				}
				require.NoError(t, l.Reconfigure(weirhttp.LimitConfig{Policies: c.next}))
				require.Equal(t, c.want, withoutTimes(request{}.send(h).Header().Get("RateLimit")))
			})
		})
	}
}

func TestReconfigureOfAShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := policyPerMinute(2, weirhttp.ByNothing)
		policy.Shadow = true
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
		for range 5 {
			require.Equal(t, 200, request{}.send(l.Handler(okHandler)).Code)
		}
		policy.Shadow = false
		require.NoError(t, l.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}))
		require.Equal(t, 429, request{}.send(l.Handler(okHandler)).Code, "requests in shadow mode are taken from the quota")
		require.Equal(t, [3]float64{2, 1, 3}, requestCounts(l, "minute"), "the counters continue")
	})
}

func TestInvalidReconfigureChangesNothing(t *testing.T) {
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(10, weirhttp.ByNothing)}})
	require.Error(t, l.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(20, weirhttp.ByNothing), {Name: "second"}}}))
	require.Equal(t, `"minute";r=9`, withoutTimes(request{}.send(l.Handler(okHandler)).Header().Get("RateLimit")))
}

func TestReconfigureDuringRequests(t *testing.T) {
	policies := func(n int) weirhttp.LimitConfig {
		return weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "hour", Rate: limiter.Per(float64(n), time.Hour), Burst: n, By: weirhttp.ByNothing}, policyPerMinute(1000, weirhttp.ByIP)}}
	}
	l := weirhttp.NewLimit(policies(100))
	h := l.Handler(okHandler)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				if (request{}).send(h).Code == http.StatusOK {
					passed.Add(1)
				}
			}
		})
	}
	for i := range 200 {
		require.NoError(t, l.Reconfigure(policies(100+i%2)))
		readMetrics(l)
	}
	all.Wait()
	require.LessOrEqual(t, passed.Load(), int64(101), "Reconfigure has not refilled a quota")
	require.GreaterOrEqual(t, passed.Load(), int64(100))
}
