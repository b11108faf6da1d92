package weirhttp_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func TestCountRefused(t *testing.T) {
	for stacked, want := range map[bool]string{false: `"minute";r=29`, true: `"minute";r=27`} {
		synctest.Test(t, func(t *testing.T) {
			h := weirhttp.NewLimit(weirhttp.LimitConfig{
				Policies: []weirhttp.Policy{policyPerSecond(1, weirhttp.ByNothing), policyPerMinute(30, weirhttp.ByNothing)}, CountRefused: stacked,
			}).Handler(okHandler)
			var last *httptest.ResponseRecorder
			for range 3 {
				last = request{}.send(h)
			}
			require.Equal(t, 429, last.Code)
			require.Contains(t, last.Header().Get("RateLimit"), want)
		})
	}
}

func TestRequestsToWhichNoPolicyAppliesAreNotCounted(t *testing.T) {
	policy := policyPerSecond(1, weirhttp.ByNothing)
	policy.When = func(r *http.Request) bool {
		addr := weirhttp.Proxies{}.ClientIP(r)
		for _, n := range parseNetworks("198.51.100.0/24", "2001:db8:1::/48") {
			if n.Contains(addr) {
				return false
			}
		}
		return r.URL.Path != "/health" && (r.Header.Get("X-Api-Key") != "admin" || !parseNetworks("192.0.2.0/24")[0].Contains(addr))
	}
	h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}).Handler(okHandler)
	require.Equal(t, 200, request{}.send(h).Code)
	for _, c := range []struct {
		request
		want int
	}{
		{request{from: "198.51.100.7:1"}, 200},
		{request{from: "[2001:db8:1:2::3]:1"}, 200},
		{request{from: "192.0.2.9:1", key: "admin"}, 200},
		{request{from: "203.0.113.9:1", key: "admin"}, 429},
		{request{from: "192.0.2.9:1", key: "nobody"}, 429},
		{request{path: "/health"}, 200},
		{request{path: "/"}, 429},
		{request{from: "203.0.113.1:1", headers: http.Header{"X-Forwarded-For": {"198.51.100.7"}}}, 429},
	} {
		w := c.send(h)
		require.Equalf(t, c.want, w.Code, "%+v", c.request)
		require.Equalf(t, c.want == 200, w.Header().Get("RateLimit") == "", "%+v", c.request)
	}
}

func TestPolicyWhen(t *testing.T) {
	gold := func(r *http.Request) bool { return byAPIKey(r) == "gold" }
	others := func(r *http.Request) bool { return !gold(r) }
	l := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{
			{Name: "gold", Rate: limiter.Per(3, time.Hour), Burst: 3, By: byAPIKey, When: gold},
			{Name: "others", Rate: limiter.Per(1, time.Hour), Burst: 1, By: byAPIKey, When: others},
		},
	})
	passed := map[string]int{}
	for range 5 {
		for _, key := range []string{"gold", "tin", "lead"} {
			if w := (request{key: key}).send(l.Handler(okHandler)); w.Code == http.StatusOK {
				passed[key]++
				require.NotContains(t, w.Header().Get("RateLimit-Policy"), ",", "one policy applies to each request")
			}
		}
	}
	require.Equal(t, map[string]int{"gold": 3, "tin": 1, "lead": 1}, passed)
	require.Equal(t, [3]float64{3, 2, 0}, requestCounts(l, "gold"))
	require.Equal(t, [3]float64{2, 8, 0}, requestCounts(l, "others"))
}

func TestShadowPolicy(t *testing.T) {
	strict := policyPerSecond(1, weirhttp.ByNothing)
	strict.Name, strict.Shadow = "strict", true
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{strict, policyPerMinute(3, weirhttp.ByNothing)}})
	for i := range 5 {
		w := request{}.send(l.Handler(okHandler))
		require.Equal(t, i < 3, w.Code == 200)
		require.NotContains(t, w.Header().Get("RateLimit")+w.Header().Get("RateLimit-Policy"), "strict")
	}
	require.Equal(t, [3]float64{1, 0, 2}, requestCounts(l, "strict"), "requests that another policy refuses are not counted")
	require.Equal(t, [3]float64{3, 2, 0}, requestCounts(l, "minute"))
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		cost, want int
		left       string
	}{
		{0, 200, `"minute";r=10`}, {1, 200, `"minute";r=9`}, {10, 200, `"minute";r=0`}, {11, 429, `"minute";r=10`}, {-1, 429, `"minute";r=10`},
	} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{
			Policies: []weirhttp.Policy{policyPerMinute(10, weirhttp.ByNothing)}, Cost: func(*http.Request) int { return c.cost },
		}).Handler(okHandler)
		w := request{}.send(h)
		require.Equalf(t, c.want, w.Code, "cost %d", c.cost)
		require.Equalf(t, c.left, withoutTimes(w.Header().Get("RateLimit")), "cost %d", c.cost)
		if c.want == 429 {
			require.Emptyf(t, w.Header().Get("Retry-After"), "a cost of %d is never allowed", c.cost)
			require.NotContains(t, w.Header().Get("RateLimit"), ";t=")
		}
	}
}

func TestCharge(t *testing.T) {
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(10, weirhttp.ByIP)}})
	login := l.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.Charge(r, 4)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	require.Equal(t, 401, request{}.send(login).Code)
	w := request{}.send(login)
	require.Equal(t, `"minute";r=4`, withoutTimes(w.Header().Get("RateLimit")), "after a charged request (1+4) and another one")
	require.Equal(t, 429, request{}.send(login).Code, "the charge has used up the quota")
	require.Equal(t, 401, request{from: "192.0.2.99:1"}.send(login).Code, "other clients are not charged")
}

// A charge beyond the quota is a debt. A Rate pays it; a Limit counts it for one Window. A key
// without room has none, because others would pay it.
func TestChargeBeyondTheQuota(t *testing.T) {
	for _, c := range []struct {
		policy weirhttp.Policy
		wait   time.Duration // for one request, after 1 and a charge of 99
	}{
		{policyPerMinute(10, weirhttp.ByIP), 546 * time.Second},
		{weirhttp.Policy{Name: "window", Limit: 10, Window: time.Minute, By: weirhttp.ByIP}, time.Minute},
		{weirhttp.Policy{Name: "spans", Limit: 32, Window: time.Minute, By: weirhttp.ByIP}, time.Minute},
	} {
		for _, first := range []string{"192.0.2.1:1", "198.51.100.1:1"} { // the other has no room
			for _, shareNew := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					policy := c.policy
					policy.MaxKeys, policy.ShareNew = 1, shareNew
					l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
					h := l.Handler(okHandler)
					require.Equal(t, 200, request{from: first}.send(h).Code)
					request := request{from: "192.0.2.1:1"}
					if first != request.from {
						require.Equal(t, 200, request.send(h).Code)
					}
					r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
					r.RemoteAddr = request.from
					l.Charge(r, 0)
					l.Charge(r, -5)
					l.Charge(r, 99)
					w := request.send(h)
					require.Equal(t, 429, w.Code, "%s %s %v", policy.Name, first, shareNew)
					if first != request.from {
						require.Contains(t, []string{"6", "60"}, w.Header().Get("Retry-After"), "until one request more")
						return
					}
					require.Equal(t, strconv.Itoa(int(c.wait/time.Second)), w.Header().Get("Retry-After"))
					time.Sleep(c.wait - time.Nanosecond)
					require.Equal(t, 429, request.send(h).Code)
					time.Sleep(time.Nanosecond)
					require.Equal(t, 200, request.send(h).Code)
				})
			}
		}
	}
}

// A key that has a debt is not forgotten for a new key, even if it has made no request.
func TestAKeyWithADebtIsNotForgotten(t *testing.T) {
	for _, policy := range []weirhttp.Policy{policyPerMinute(10, weirhttp.ByIP), {Name: "window", Limit: 10, Window: time.Minute, By: weirhttp.ByIP}} {
		policy.MaxKeys = 1
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
		h := l.Handler(okHandler)
		l.Charge(httptest.NewRequest(http.MethodGet, "/", http.NoBody), 99) // of 192.0.2.1
		require.Equal(t, 200, request{from: "198.51.100.1:1"}.send(h).Code)
		require.Equal(t, 429, request{from: "192.0.2.1:1"}.send(h).Code)
	}
}

// Charges of any size add up without an overflow.
func TestHugeCharges(t *testing.T) {
	for _, policy := range []weirhttp.Policy{policyPerMinute(10, weirhttp.ByIP), {Name: "window", Limit: 10, Window: time.Minute, By: weirhttp.ByIP}} {
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
		for range 10 {
			l.Charge(httptest.NewRequest(http.MethodGet, "/", http.NoBody), math.MaxInt)
			w := request{}.send(l.Handler(okHandler))
			require.Equal(t, 429, w.Code)
			require.Contains(t, w.Header().Get("RateLimit"), "r=0")
		}
	}
}

func TestConcurrentCharges(t *testing.T) {
	for range 1000 {
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(7, weirhttp.ByIP)}})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { l.Charge(httptest.NewRequest(http.MethodGet, "/", http.NoBody), 5) })
		}
		both.Wait()
		require.Equal(t, 429, request{}.send(l.Handler(http.NotFoundHandler())).Code)
	}
}

func TestConcurrentRequestsStayWithinAllPolicies(t *testing.T) {
	l := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{{Name: "one", Rate: limiter.Per(50, time.Hour), Burst: 50, By: weirhttp.ByNothing}, {Name: "address", Rate: limiter.Per(30, time.Hour), Burst: 30, By: weirhttp.ByIP}},
	})
	h := l.Handler(okHandler)
	var passed [2]atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				if (request{from: "192.0.2." + strconv.Itoa(i%2) + ":1"}).send(h).Code == http.StatusOK {
					passed[i%2].Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(50), passed[0].Load()+passed[1].Load())
	require.LessOrEqual(t, max(passed[0].Load(), passed[1].Load()), int64(30))
}

func TestOnRefusalGetsTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refusals []weirhttp.Refusal
		mux := http.NewServeMux()
		mux.Handle("GET /a", okHandler)
		h := weirhttp.NewLimit(weirhttp.LimitConfig{
			Policies:  []weirhttp.Policy{policyPerMinute(1, weirhttp.ByIP), policyPerSecond(1, weirhttp.ByNothing), {Name: "hour", Rate: limiter.Per(5, time.Hour), Burst: 5, By: weirhttp.ByNothing}},
			OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
		}).Handler(mux)
		for range 2 {
			request{from: "192.0.2.1:1", path: "/a"}.send(h)
		}
		require.Equal(t, []weirhttp.Refusal{{
			Status: 429, Policies: []string{"minute", "second"}, RetryAfter: time.Minute,
		}}, refusals)
	})
}

func TestAnswer(t *testing.T) {
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{policyPerMinute(1, weirhttp.ByNothing)},
		Answer: func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
			http.Error(w, "slow down: "+strings.Join(f.Policies, " "), http.StatusTeapot)
		},
	}).Handler(okHandler)
	request{}.send(h)
	w := request{}.send(h)
	require.Equal(t, 418, w.Code)
	require.Equal(t, "slow down: minute\n", w.Body.String())
	require.Equal(t, "60", w.Header().Get("Retry-After"))
}
