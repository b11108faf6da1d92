package weirhttp_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

var okHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

// request describes a request of a test.
type request struct {
	from, key, path string
	headers         http.Header
}

func (q request) send(h http.Handler) *httptest.ResponseRecorder {
	path := q.path
	if path == "" {
		path = "/"
	}
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	if q.from != "" {
		r.RemoteAddr = q.from
	}
	maps.Copy(r.Header, q.headers)
	if q.key != "" {
		r.Header.Set("X-Api-Key", q.key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// byAPIKey is the key function of most tests.
var byAPIKey = weirhttp.ByHeader("X-Api-Key")

func policyPerSecond(n int, by func(*http.Request) string) weirhttp.Policy {
	return weirhttp.Policy{Name: "second", Rate: limiter.PerSecond(float64(n)), Burst: n, By: by}
}

func policyPerMinute(n int, by func(*http.Request) string) weirhttp.Policy {
	return weirhttp.Policy{Name: "minute", Rate: limiter.PerMinute(float64(n)), Burst: n, By: by}
}

// readMetrics returns the values of a source by instrument, name and outcome.
func readMetrics(s stat.Source) map[string]float64 {
	all := map[string]float64{}
	for series, v := range s.Observe {
		all[strings.TrimPrefix(series.Instrument.Name, "weir.limiter.")+" "+strings.TrimSpace(strings.Join(series.Values, " "))] = v
	}
	return all
}

// requestCounts returns how many requests a policy has allowed, refused and shadowed.
func requestCounts(l *weirhttp.Limit, policy string) [3]float64 {
	all := readMetrics(l)
	return [3]float64{all["requests "+policy+" allowed"], all["requests "+policy+" refused"], all["requests "+policy+" shadowed"]}
}

const one, other = "192.0.2.1:1000", "192.0.2.2:1000"

// twoRoutes has a route with a variable part and one without.
func twoRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/a/{id}", okHandler)
	mux.Handle("/b", okHandler)
	return mux
}

// quotaRequest is a request and the status of its response.
type quotaRequest struct {
	request
	want int
}

// quotaCases are requests to a policy of one request per second, and the statuses of the responses.
var quotaCases = []struct {
	what     string
	by       func(*http.Request) string
	requests []quotaRequest
}{
	{"all together", weirhttp.ByNothing, []quotaRequest{{request{from: one}, 200}, {request{from: other}, 429}}},
	{"by address", weirhttp.ByIP, []quotaRequest{{request{from: one}, 200}, {request{from: "192.0.2.1:9999"}, 429}, {request{from: other}, 200}}},
	{"by network of IPv6", weirhttp.ByIP, []quotaRequest{
		{request{from: "[2001:db8::1]:1"}, 200}, {request{from: "[2001:db8:0:0:ffff::2]:1"}, 429}, {request{from: "[2001:db8:0:1::1]:1"}, 200},
	}},
	{"by address, whatever notation", weirhttp.ByIP, []quotaRequest{{request{from: one}, 200}, {request{from: "[::ffff:192.0.2.1]:1"}, 429}}},
	{"by client", byAPIKey, []quotaRequest{
		{request{from: one, key: "k"}, 200},
		{request{from: other, key: "k"}, 429},
		{request{from: one, key: "l"}, 200},
		{request{from: one}, 200},
		{request{from: one}, 429},
		{request{from: other}, 200},
	}},
	{"by client and address", weirhttp.Combine(byAPIKey, weirhttp.ByIP), []quotaRequest{
		{request{from: one, key: "k"}, 200}, {request{from: one, key: "k"}, 429}, {request{from: other, key: "k"}, 200}, {request{from: one, key: "l"}, 200},
	}},
	{"by route", weirhttp.ByRoute(twoRoutes()), []quotaRequest{
		{request{from: one, path: "/a/1"}, 200}, {request{from: other, path: "/a/2"}, 429}, {request{from: one, path: "/b"}, 200},
	}},
	{"by route and address", weirhttp.Combine(weirhttp.ByRoute(twoRoutes()), weirhttp.ByIP), []quotaRequest{
		{request{from: one, path: "/a/1"}, 200}, {request{from: one, path: "/a/2"}, 429}, {request{from: other, path: "/a/2"}, 200}, {request{from: one, path: "/b"}, 200},
	}},
}

func TestQuotasPerKey(t *testing.T) {
	for _, c := range quotaCases {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := weirhttp.NewLimit(weirhttp.LimitConfig{
					Policies: []weirhttp.Policy{policyPerSecond(1, c.by)},
				}).Handler(okHandler)
				for i, a := range c.requests {
					require.Equalf(t, a.want, a.send(h).Code, "request %d: %+v", i, a.request)
				}
				time.Sleep(time.Second)
				require.Equal(t, 200, c.requests[0].send(h).Code, "one second later")
			})
		})
	}
}

// policyStep is n requests at a time.
type policyStep struct {
	at      time.Duration
	n       int
	allowed int    // how many of them
	left    string // RateLimit of the last response, without times
}

// policySteps are the requests at several times, how many of them are allowed, and the quotas that
// the last response shows.
var policySteps = []struct {
	what         string
	countRefused bool
	steps        []policyStep
}{
	{"refused requests do not count", false, []policyStep{
		{0, 4, 2, `"second";r=0, "minute";r=3, "hour";r=6, "day";r=7`},
		{time.Second, 3, 2, `"second";r=0, "minute";r=1, "hour";r=4, "day";r=5`},
		{2 * time.Second, 2, 1, `"second";r=1, "minute";r=0, "hour";r=3, "day";r=4`},
		{62 * time.Second, 1, 1, `"second";r=1, "minute";r=4, "hour";r=2, "day";r=3`},
		{63 * time.Second, 2, 2, `"second";r=0, "minute";r=2, "hour";r=0, "day";r=1`},
		{64 * time.Second, 2, 0, `"second";r=2, "minute";r=2, "hour";r=0, "day";r=1`},
	}},
	{"refused requests count where they are not refused", true, []policyStep{
		{0, 4, 2, `"second";r=0, "minute";r=1, "hour";r=4, "day";r=5`},
		{time.Second, 2, 1, `"second";r=0, "minute";r=0, "hour";r=2, "day";r=3`},
		{2 * time.Second, 9, 0, `"second";r=0, "minute";r=0, "hour";r=0, "day";r=0`},
	}},
}

func TestSeveralPolicies(t *testing.T) {
	periods := []weirhttp.Policy{
		policyPerSecond(2, weirhttp.ByIP), policyPerMinute(5, weirhttp.ByIP),
		{Name: "hour", Rate: limiter.Per(8, time.Hour), Burst: 8, By: weirhttp.ByIP},
		{Name: "day", Rate: limiter.Per(9, 24*time.Hour), Burst: 9, By: weirhttp.ByIP},
	}
	for _, c := range policySteps {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: periods, CountRefused: c.countRefused}).Handler(okHandler)
				start := time.Now()
				for _, s := range c.steps {
					time.Sleep(time.Until(start.Add(s.at)))
					var passed int
					var last *httptest.ResponseRecorder
					for range s.n {
						if last = (request{}).send(h); last.Code == http.StatusOK {
							passed++
						}
					}
					require.Equalf(t, s.allowed, passed, "of %d at %v", s.n, s.at)
					require.Equalf(t, s.left, withoutTimes(last.Header().Get("RateLimit")), "at %v", s.at)
				}
			})
		})
	}
}

// withoutTimes returns a RateLimit header without the times.
func withoutTimes(field string) string {
	items := strings.Split(field, ", ")
	for i := range items {
		items[i], _, _ = strings.Cut(items[i], ";t=")
	}
	return strings.Join(items, ", ")
}
