package weirhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// headerCases are requests that use up policies, and the headers of the last response.
var headerCases = []struct {
	what     string
	policies []weirhttp.Policy
	n        int // number of requests; the headers are those of the last
	policy   string
	limit    string
	retry    string
}{
	{
		"the first of ten a second",
		[]weirhttp.Policy{{Name: "default", Rate: limiter.Per(10, time.Second), Burst: 10, By: weirhttp.ByNothing}},
		1, `"default";q=10;w=1`, `"default";r=9;t=1`, "",
	},
	{
		"one too many",
		[]weirhttp.Policy{{Name: "default", Rate: limiter.Per(10, time.Second), Burst: 10, By: weirhttp.ByNothing}},
		11, `"default";q=10;w=1`, `"default";r=0;t=1`, "1",
	},
	{
		"two policies",
		[]weirhttp.Policy{{Name: "default", Rate: limiter.Per(10, time.Second), Burst: 10, By: weirhttp.ByNothing}, {Name: "daily", Rate: limiter.Per(1000, 24*time.Hour), Burst: 1000, By: weirhttp.ByNothing}},
		1, `"default";q=10;w=1, "daily";q=1000;w=86400`, `"default";r=9;t=1, "daily";r=999;t=86314`, "",
	},
	{
		"two policies, one too many for one: the other gives no time, which could be later than Retry-After",
		[]weirhttp.Policy{{Name: "default", Rate: limiter.Per(10, time.Second), Burst: 10, By: weirhttp.ByNothing}, {Name: "daily", Rate: limiter.Per(1000, 24*time.Hour), Burst: 1000, By: weirhttp.ByNothing}},
		11, `"default";q=10;w=1, "daily";q=1000;w=86400`, `"default";r=0;t=1, "daily";r=990`, "1",
	},
	{
		"r/t is no more than the rate, though all is there: not r=9999;t=1",
		[]weirhttp.Policy{{Name: "somepolicy", Rate: limiter.Per(10_000, 1000*time.Second), Burst: 10_000, By: weirhttp.ByNothing}},
		1, `"somepolicy";q=10000;w=1000`, `"somepolicy";r=9999;t=1000`, "",
	},
	{
		"nothing left: until there is one more",
		[]weirhttp.Policy{{Name: "minute", Rate: limiter.Per(6, time.Minute), Burst: 6, By: weirhttp.ByNothing}},
		6, `"minute";q=6;w=60`, `"minute";r=0;t=10`, "",
	},
	{
		"less than a second",
		[]weirhttp.Policy{{Name: "tenth", Rate: limiter.Per(10, 100*time.Millisecond), Burst: 10, By: weirhttp.ByNothing}},
		11, `"tenth";q=100;w=1`, `"tenth";r=0;t=1`, "1",
	},
	{
		"a second and a half",
		[]weirhttp.Policy{{Name: "odd", Rate: limiter.Per(3, 1500*time.Millisecond), Burst: 3, By: weirhttp.ByNothing}},
		1, `"odd";q=4;w=2`, `"odd";r=2;t=1`, "",
	},
	{
		"fewer at once than in a span",
		[]weirhttp.Policy{{Name: "smooth", Rate: limiter.Per(60, time.Minute), Burst: 2, By: weirhttp.ByNothing}},
		3, `"smooth";q=60;w=60`, `"smooth";r=0;t=1`, "1",
	},
	{
		"a wait that is rounded up",
		[]weirhttp.Policy{{Name: "week", Rate: limiter.Per(1, 7*24*time.Hour+time.Millisecond), Burst: 1, By: weirhttp.ByNothing}},
		2, `"week";q=1;w=604801`, `"week";r=0;t=604801`, "604801",
	},
}

func TestRateLimitHeaders(t *testing.T) {
	for _, c := range headerCases {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: c.policies}).Handler(okHandler)
				for range c.n - 1 {
					request{}.send(h)
				}
				w := request{}.send(h)
				require.Equal(t, c.policy, w.Header().Get("RateLimit-Policy"))
				require.Equal(t, c.limit, w.Header().Get("RateLimit"))
				require.Equal(t, c.retry, w.Header().Get("Retry-After"))
				require.Equal(t, c.retry != "", w.Code == http.StatusTooManyRequests)
				require.Empty(t, w.Header().Get("X-RateLimit-Limit"))
			})
		})
	}
}

func TestRetryAfterIsLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerSecond(3, weirhttp.ByNothing), policyPerMinute(7, weirhttp.ByNothing)}}).Handler(okHandler)
		for range 50 {
			w := request{}.send(h)
			if w.Code == http.StatusTooManyRequests {
				wait, err := time.ParseDuration(w.Header().Get("Retry-After") + "s")
				require.NoError(t, err)
				require.GreaterOrEqual(t, wait, time.Second)
				time.Sleep(wait)
				require.Equal(t, 200, request{}.send(h).Code)
			}
		}
	})
}

func TestClientThatObeysTheEffectiveWindowIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "q", Rate: limiter.Per(7, 13*time.Second), Burst: 4, By: weirhttp.ByNothing}}}).Handler(okHandler)
		for i := range 100 {
			w := request{}.send(h)
			require.Equalf(t, 200, w.Code, "request %d", i)
			var left, window int
			_, err := fmt.Sscanf(w.Header().Get("RateLimit"), `"q";r=%d;t=%d`, &left, &window)
			require.NoError(t, err)
			time.Sleep(time.Duration(window) * time.Second / time.Duration(max(left, 1)))
		}
	})
}

func TestLegacyHeadersAreThoseOfTheClosestPolicy(t *testing.T) {
	for _, c := range []struct {
		what     string
		policies []weirhttp.Policy
		want     [][3]string
	}{
		{"the least that is left", []weirhttp.Policy{policyPerMinute(20, weirhttp.ByNothing), policyPerSecond(2, weirhttp.ByNothing)}, [][3]string{{"2", "1", "1"}, {"2", "0", "1"}, {"2", "0", "1"}}},
		{"as much that is left, for longer", []weirhttp.Policy{policyPerSecond(2, weirhttp.ByNothing), policyPerMinute(2, weirhttp.ByNothing)}, [][3]string{{"2", "1", "30"}, {"2", "0", "60"}, {"2", "0", "60"}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: c.policies, Legacy: true, Quiet: true}).Handler(okHandler)
				for _, want := range c.want {
					got := request{}.send(h).Header()
					require.Equal(t, want, [3]string{got.Get("X-RateLimit-Limit"), got.Get("X-RateLimit-Remaining"), got.Get("X-RateLimit-Reset")})
					require.Empty(t, got.Get("RateLimit")+got.Get("RateLimit-Policy"))
				}
			})
		})
	}
}

func TestHeadersOfSeveralLimits(t *testing.T) {
	inner := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerSecond(5, weirhttp.ByNothing)}})
	outer := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(9, weirhttp.ByNothing)}})
	w := request{}.send(outer.Handler(inner.Handler(okHandler)))
	require.Equal(t, []string{`"minute";q=9;w=60`, `"second";q=5;w=1`}, w.Header().Values("RateLimit-Policy"))
	require.Len(t, w.Header().Values("RateLimit"), 2)
}

func TestProblemNamesThePolicies(t *testing.T) {
	h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerSecond(1, weirhttp.ByNothing), policyPerMinute(1, weirhttp.ByNothing), {Name: "hour", Rate: limiter.Per(9, time.Hour), Burst: 9, By: weirhttp.ByNothing}}}).Handler(okHandler)
	request{}.send(h)
	w := request{}.send(h)
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	var body map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	require.Equal(t, map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":  "Request cannot be satisfied as assigned quota has been exceeded",
		"status": 429.0, "detail": "Try again in 60 s.", "violated-policies": []any{"second", "minute"},
	}, body)
}

// The headers of the first response give a pace. The client keeps to it for a hundred rounds.
func TestClientThatKeepsToThePaceOfTheHeadersIsNotRefused(t *testing.T) {
	for _, p := range []weirhttp.Policy{
		{Rate: limiter.PerSecond(10), Burst: 20},
		{Rate: limiter.PerSecond(10), Burst: 1},
		{Rate: limiter.PerSecond(2), Burst: 100},
		{Rate: limiter.Per(7, 13*time.Second), Burst: 4},
		{Rate: limiter.PerSecond(1), Burst: 2},
		{Limit: 1, Window: 2 * time.Second},
		{Limit: 10, Window: 2 * time.Second},
		{Limit: 16, Window: time.Minute},
		{Limit: 17, Window: time.Minute},
		{Limit: 100, Window: 2 * time.Second},
		{Limit: 1000, Window: 90 * time.Second},
	} {
		p.Name, p.By = "p", weirhttp.ByNothing
		synctest.Test(t, func(t *testing.T) {
			h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}}).Handler(okHandler)
			var quota, window, left, seconds int
			w := request{}.send(h)
			_, err := fmt.Sscanf(w.Header().Get("RateLimit-Policy")+w.Header().Get("RateLimit"), `"p";q=%d;w=%d"p";r=%d;t=%d`, &quota, &window, &left, &seconds)
			require.NoError(t, err)
			require.LessOrEqual(t, left, quota, "%+v", p)
			if left == 0 {
				left = 1
			}
			for i := range 100 * left {
				time.Sleep(time.Duration(seconds) * time.Second / time.Duration(left))
				require.Equal(t, 200, request{}.send(h).Code, "request %d of %+v at %d in %d s", i, p, left, seconds)
			}
		})
	}
}

// A bucket that holds more than the requests of a second is described by the time it takes to fill.
func TestPolicyHeaderHasTheBurst(t *testing.T) {
	for want, p := range map[string]weirhttp.Policy{
		`"p";q=20;w=2`:   {Rate: limiter.PerSecond(10), Burst: 20},
		`"p";q=2;w=2`:    {Rate: limiter.PerSecond(1), Burst: 2},
		`"p";q=10;w=1`:   {Rate: limiter.PerSecond(10), Burst: 3},
		`"p";q=100;w=60`: {Rate: limiter.PerMinute(100), Burst: 100},
		`"p";q=5;w=2`:    {Rate: limiter.PerSecond(2.5), Burst: 4},
	} {
		p.Name, p.By = "p", weirhttp.ByNothing
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}}).Handler(okHandler)
		require.Equal(t, want, request{}.send(h).Header().Get("RateLimit-Policy"))
	}
}

// A refused request can be tried again after Retry-After, unless it can never be allowed.
func TestRefusalHasRetryAfterUnlessItIsFinal(t *testing.T) {
	bucket := weirhttp.Policy{Name: "bucket", Rate: limiter.PerSecond(1), Burst: 5, By: weirhttp.ByNothing}
	window := weirhttp.Policy{Name: "window", Limit: 5, Window: time.Minute, By: weirhttp.ByNothing}
	for _, p := range []weirhttp.Policy{bucket, window} {
		for cost, allowed := range map[int]bool{-1: false, 3: true, 4: false, 5: false, 6: false} {
			synctest.Test(t, func(t *testing.T) {
				h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}, Cost: func(r *http.Request) int {
					n, err := strconv.Atoi(r.URL.Path[1:])
					require.NoError(t, err)
					return n
				}}).Handler(okHandler)
				request{path: "/2"}.send(h)
				w := request{path: fmt.Sprintf("/%d", cost)}.send(h)
				require.Equal(t, allowed, w.Code == http.StatusOK)
				final := cost < 0 || cost > 5
				require.Equal(t, final, strings.Contains(w.Body.String(), "more than the quota allows"))
				require.Equal(t, !allowed && !final, w.Header().Get("Retry-After") != "")
			})
		}
	}
}

// costInPath returns a function for LimitConfig.Cost. The path of a request is its cost.
func costInPath(t *testing.T) func(*http.Request) int {
	return func(r *http.Request) int {
		n, err := strconv.Atoi(r.URL.Path[1:])
		require.NoError(t, err)
		return n
	}
}

// A request that is refused and counted can be made again after Retry-After, although the quotas
// that have counted it have less left.
func TestRetryAfterOfACountedRefusalIsLongEnough(t *testing.T) {
	second, minute := policyPerSecond(2, weirhttp.ByNothing), policyPerMinute(7, weirhttp.ByNothing)
	window := weirhttp.Policy{Name: "window", Limit: 4, Window: time.Minute, By: weirhttp.ByNothing}
	shadow := weirhttp.Policy{Name: "shadow", Limit: 2, Window: time.Hour, By: weirhttp.ByNothing, Shadow: true}
	for _, policies := range [][]weirhttp.Policy{{second, minute}, {minute, second}, {second, window}, {second, shadow}} {
		synctest.Test(t, func(t *testing.T) {
			cost := 1
			h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies, CountRefused: true, Cost: func(*http.Request) int { return cost }}).Handler(okHandler)
			for i := range 100 {
				cost = 1 + i%2
				w := request{}.send(h)
				if w.Code == http.StatusTooManyRequests {
					wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
					require.NoError(t, err)
					require.LessOrEqual(t, wait, 60)
					time.Sleep(time.Duration(wait) * time.Second)
					require.Equal(t, 200, request{}.send(h).Code, "request %d of cost %d, after %d s", i, cost, wait)
				}
			}
		})
	}
}

// "If r is 0, the next request can be made after t", also if a Limit was lowered below the requests
// that it has allowed.
func TestTimeOfAnExceededWindowIsLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := func(n int) weirhttp.LimitConfig {
			return weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerWindow(n, time.Minute, weirhttp.ByNothing)}, Cost: costInPath(t)}
		}
		l := weirhttp.NewLimit(config(10))
		h := l.Handler(okHandler)
		for range 10 {
			require.Equal(t, 200, request{path: "/1"}.send(h).Code)
			time.Sleep(time.Second)
		}
		require.NoError(t, l.Reconfigure(config(5)))
		w := request{path: "/0"}.send(h)
		require.Equal(t, 200, w.Code)
		require.Equal(t, `"window";r=0;t=55`, w.Header().Get("RateLimit"))
		time.Sleep(55 * time.Second)
		require.Equal(t, 200, request{path: "/1"}.send(h).Code)
	})
}
