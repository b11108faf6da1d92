package weirhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
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
