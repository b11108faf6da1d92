package weirhttp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
		"a unit",
		[]weirhttp.Policy{{Name: "bytes", Rate: limiter.Per(600, time.Minute), Burst: 100, Unit: "content-bytes", By: weirhttp.ByNothing}},
		1, `"bytes";q=600;qu="content-bytes";w=60`, `"bytes";r=99;t=10`, "",
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

// "A client that makes r requests per t, evenly spread, is not refused": the headers of the first
// response give a pace, with several policies the slowest. The client keeps to it for a hundred
// rounds.
func TestClientThatKeepsToThePaceOfTheHeadersIsNotRefused(t *testing.T) {
	second, window := weirhttp.Policy{Rate: limiter.PerSecond(10), Burst: 20}, weirhttp.Policy{Limit: 17, Window: time.Minute}
	remote := weirhttp.Policy{Remote: (&remoteStore{limit: 1e6, used: map[string]int{}}).limitOf}
	for _, policies := range [][]weirhttp.Policy{
		{second},
		{{Rate: limiter.PerSecond(10), Burst: 1}},
		{{Rate: limiter.PerSecond(2), Burst: 100}},
		{{Rate: limiter.Per(7, 13*time.Second), Burst: 4}},
		{{Rate: limiter.PerSecond(1), Burst: 2}},
		{{Limit: 1, Window: 2 * time.Second}},
		{{Limit: 10, Window: 2 * time.Second}},
		{{Limit: 16, Window: time.Minute}},
		{window},
		{{Limit: 100, Window: 2 * time.Second}},
		{{Limit: 1000, Window: 90 * time.Second}},
		{second, window},
		{window, {Rate: limiter.PerMinute(5), Burst: 40}},
		{remote, second},
	} {
		synctest.Test(t, func(t *testing.T) {
			for i := range policies {
				policies[i].Name, policies[i].By = strconv.Itoa(i), weirhttp.ByNothing
			}
			h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies}).Handler(okHandler)
			w := request{}.send(h)
			quotas, limits := strings.Split(w.Header().Get("RateLimit-Policy"), ", "), strings.Split(w.Header().Get("RateLimit"), ", ")
			require.Len(t, limits, len(policies))
			pause, rounds := time.Duration(0), 0
			for i, p := range policies {
				var quota, left, seconds int
				_, err := fmt.Sscanf(quotas[i]+limits[i], `"`+p.Name+`";q=%d`, &quota)
				require.NoError(t, err)
				if p.Remote != nil {
					require.NotContains(t, quotas[i]+limits[i], ";w=")
					require.NotContains(t, quotas[i]+limits[i], ";t=")
					continue
				}
				_, err = fmt.Sscanf(limits[i], `"`+p.Name+`";r=%d;t=%d`, &left, &seconds)
				require.NoError(t, err)
				require.LessOrEqual(t, left, quota, "%+v", p)
				pause, rounds = max(pause, time.Duration(seconds)*time.Second/time.Duration(max(left, 1))), max(rounds, left, 1)
			}
			for i := range 100 * rounds {
				time.Sleep(pause)
				require.Equal(t, 200, request{}.send(h).Code, "request %d of %+v, one per %v", i, policies, pause)
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

// "A refusal has Retry-After, in whole seconds and at least 1, unless the request can never be
// allowed because of its cost", whichever policy refuses.
func TestRefusalHasRetryAfterUnlessItIsFinal(t *testing.T) {
	bucket := weirhttp.Policy{Name: "bucket", Rate: limiter.PerSecond(1), Burst: 5, By: byAPIKey}
	window := weirhttp.Policy{Name: "window", Limit: 5, Window: time.Minute, By: byAPIKey}
	remote := weirhttp.Policy{Name: "remote", By: byAPIKey}
	full := func(p weirhttp.Policy, shareNew bool) weirhttp.Policy {
		p.MaxKeys, p.ShareNew = 1, shareNew
		return p
	}
	large := weirhttp.Policy{Name: "large", Rate: limiter.PerSecond(100), Burst: 100, By: byAPIKey}
	for name, policies := range map[string][]weirhttp.Policy{
		"bucket": {bucket}, "window": {window}, "remote": {remote},
		"several": {large, bucket, window}, "remote and others": {large, remote}, "a remote that is not asked": {remote, bucket},
		"no room in a bucket": {full(bucket, false)}, "no room in a window": {full(window, false)},
		"a shared bucket": {full(bucket, true)}, "a shared window": {full(window, true)},
	} {
		for cost, allowed := range map[int]bool{-1: false, 0: true, 3: true, 4: false, 5: false, 6: false} {
			t.Run(fmt.Sprintf("%s, cost %d", name, cost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					policies := slices.Clone(policies)
					for i := range policies {
						if policies[i].Name == "remote" {
							policies[i].Remote = (&remoteStore{limit: 5, used: map[string]int{}}).limitOf
						}
					}
					h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies, Cost: costInPath(t)}).Handler(okHandler)
					if policies[0].MaxKeys > 0 {
						request{key: "other", path: "/1"}.send(h)
					}
					request{path: "/2"}.send(h)
					w := request{path: fmt.Sprintf("/%d", cost)}.send(h)
					require.Equal(t, allowed, w.Code == http.StatusOK)
					final := cost < 0 || cost > 5
					require.Equal(t, final, strings.Contains(w.Body.String(), "more than the quota allows"))
					wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
					require.Equal(t, !allowed && !final, err == nil && wait >= 1)
				})
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

// "The headers are already set" when Answer is called: Retry-After unless the request can never be
// allowed, and those about quotas as Limit says. Each case is one request after one of cost 1.
func TestHeadersAreSetBeforeAnswerIsCalled(t *testing.T) {
	bucket := weirhttp.Policy{Name: "bucket", Rate: limiter.PerMinute(2), Burst: 2, By: byAPIKey}
	window := weirhttp.Policy{Name: "window", Limit: 5, Window: time.Minute, By: byAPIKey}
	remote := func(limit int, err error) weirhttp.Policy {
		return remotePolicy("remote", &remoteStore{limit: limit, err: err})
	}
	down := errors.New("down")
	const bucketItem, windowItem, remoteItem = `"bucket";q=2;w=60`, `"window";q=5;w=60`, `"remote";q=2`
	for name, c := range map[string]struct {
		config weirhttp.LimitConfig
		cost   int
		// Retry-After, RateLimit-Policy, RateLimit, X-RateLimit-Limit
		want [4]string
	}{
		"a bucket":                    {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket}}, 2, [4]string{"30", bucketItem, `"bucket";r=1;t=30`}},
		"several":                     {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket, window}}, 2, [4]string{"30", bucketItem + ", " + windowItem, `"bucket";r=1;t=30, "window";r=4`}},
		"a high cost":                 {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket, window}}, 3, [4]string{"", bucketItem + ", " + windowItem, `"bucket";r=1, "window";r=4`}},
		"legacy":                      {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket}, Legacy: true}, 2, [4]string{"30", bucketItem, `"bucket";r=1;t=30`, "2"}},
		"quiet":                       {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket}, Quiet: true}, 2, [4]string{"30"}},
		"quiet, legacy":               {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket}, Quiet: true, Legacy: true}, 2, [4]string{"30", "", "", "2"}},
		"a remote":                    {weirhttp.LimitConfig{Policies: []weirhttp.Policy{window, remote(2, nil)}}, 2, [4]string{"11", windowItem + ", " + remoteItem, `"window";r=4, "remote";r=1;t=11`}},
		"a high cost for a remote":    {weirhttp.LimitConfig{Policies: []weirhttp.Policy{remote(2, nil)}}, 3, [4]string{"", remoteItem, `"remote";r=1`}},
		"a remote that is not asked":  {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket, remote(2, nil)}}, 2, [4]string{"30", bucketItem, `"bucket";r=1;t=30`}},
		"a remote that says no limit": {weirhttp.LimitConfig{Policies: []weirhttp.Policy{remote(0, nil)}, Legacy: true}, 1, [4]string{}},
		"a remote that is down":       {weirhttp.LimitConfig{Policies: []weirhttp.Policy{bucket, remote(2, down)}, Legacy: true}, 1, [4]string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got [4]string
				c.config.Cost = costInPath(t)
				c.config.Answer = func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
					for i, name := range []string{"Retry-After", "RateLimit-Policy", "RateLimit", "X-RateLimit-Limit"} {
						got[i] = w.Header().Get(name)
					}
					w.WriteHeader(f.Status)
				}
				h := weirhttp.NewLimit(c.config).Handler(okHandler)
				request{path: "/1"}.send(h)
				require.NotEqual(t, http.StatusOK, request{path: fmt.Sprintf("/%d", c.cost)}.send(h).Code)
				require.Equal(t, c.want, got)
			})
		})
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
