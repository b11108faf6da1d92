package weirhttp_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

func perSecond(n int, by func(*http.Request) string) weirhttp.Policy {
	return weirhttp.Policy{Name: "second", Rate: limiter.PerSecond(float64(n)), Burst: n, By: by}
}

func perMinute(n int, by func(*http.Request) string) weirhttp.Policy {
	return weirhttp.Policy{Name: "minute", Rate: limiter.PerMinute(float64(n)), Burst: n, By: by}
}

// observed returns the values of a source by instrument, name and outcome.
func observed(s stat.Source) map[string]float64 {
	all := map[string]float64{}
	for series, v := range s.Observe {
		all[strings.TrimPrefix(series.Instrument.Name, "weir.limiter.")+" "+strings.TrimSpace(strings.Join(series.Values, " "))] = v
	}
	return all
}

// counted returns how many requests a policy has allowed, refused and shadowed.
func counted(l *weirhttp.Limit, policy string) [3]float64 {
	all := observed(l)
	return [3]float64{all["requests "+policy+" allowed"], all["requests "+policy+" refused"], all["requests "+policy+" shadowed"]}
}

func TestQuotasPerKey(t *testing.T) {
	const one, other = "192.0.2.1:1000", "192.0.2.2:1000"
	mux := http.NewServeMux()
	mux.Handle("/a/{id}", okHandler)
	mux.Handle("/b", okHandler)
	type ask struct {
		request
		want int
	}
	for _, c := range []struct {
		what string
		by   func(*http.Request) string
		asks []ask
	}{
		{"all together", weirhttp.ByNothing, []ask{{request{from: one}, 200}, {request{from: other}, 429}}},
		{"by address", weirhttp.ByIP, []ask{{request{from: one}, 200}, {request{from: "192.0.2.1:9999"}, 429}, {request{from: other}, 200}}},
		{"by network of IPv6", weirhttp.ByIP, []ask{
			{request{from: "[2001:db8::1]:1"}, 200}, {request{from: "[2001:db8:0:0:ffff::2]:1"}, 429}, {request{from: "[2001:db8:0:1::1]:1"}, 200},
		}},
		{"by address, whatever notation", weirhttp.ByIP, []ask{{request{from: one}, 200}, {request{from: "[::ffff:192.0.2.1]:1"}, 429}}},
		{"by client", byAPIKey, []ask{
			{request{from: one, key: "k"}, 200},
			{request{from: other, key: "k"}, 429},
			{request{from: one, key: "l"}, 200},
			{request{from: one}, 200},
			{request{from: one}, 429},
			{request{from: other}, 200},
		}},
		{"by client and address", weirhttp.Combine(byAPIKey, weirhttp.ByIP), []ask{
			{request{from: one, key: "k"}, 200}, {request{from: one, key: "k"}, 429}, {request{from: other, key: "k"}, 200}, {request{from: one, key: "l"}, 200},
		}},
		{"by route", weirhttp.ByRoute(mux), []ask{
			{request{from: one, path: "/a/1"}, 200}, {request{from: other, path: "/a/2"}, 429}, {request{from: one, path: "/b"}, 200},
		}},
		{"by route and address", weirhttp.Combine(weirhttp.ByRoute(mux), weirhttp.ByIP), []ask{
			{request{from: one, path: "/a/1"}, 200}, {request{from: one, path: "/a/2"}, 429}, {request{from: other, path: "/a/2"}, 200}, {request{from: one, path: "/b"}, 200},
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := weirhttp.NewLimit(weirhttp.LimitConfig{
					Policies: []weirhttp.Policy{perSecond(1, c.by)},
				}).Handler(okHandler)
				for i, a := range c.asks {
					require.Equalf(t, a.want, a.send(h).Code, "request %d: %+v", i, a.request)
				}
				time.Sleep(time.Second)
				require.Equal(t, 200, c.asks[0].send(h).Code, "one second later")
			})
		})
	}
}

func TestSeveralPolicies(t *testing.T) {
	periods := []weirhttp.Policy{
		perSecond(2, weirhttp.ByIP), perMinute(5, weirhttp.ByIP),
		{Name: "hour", Rate: limiter.Per(8, time.Hour), Burst: 8, By: weirhttp.ByIP},
		{Name: "day", Rate: limiter.Per(9, 24*time.Hour), Burst: 9, By: weirhttp.ByIP},
	}
	for _, c := range []struct {
		what         string
		countRefused bool
		steps        []struct {
			at    time.Duration
			n     int
			codes string // the statuses of the responses
			left  string
		}
	}{
		{"refused requests do not count", false, []struct {
			at    time.Duration
			n     int
			codes string
			left  string
		}{
			{0, 4, "2", `"second";r=0, "minute";r=3, "hour";r=6, "day";r=7`},
			{time.Second, 3, "2", `"second";r=0, "minute";r=1, "hour";r=4, "day";r=5`},
			{2 * time.Second, 2, "1", `"second";r=1, "minute";r=0, "hour";r=3, "day";r=4`},
			{62 * time.Second, 1, "1", `"second";r=1, "minute";r=4, "hour";r=2, "day";r=3`},
			{63 * time.Second, 2, "2", `"second";r=0, "minute";r=2, "hour";r=0, "day";r=1`},
			{64 * time.Second, 2, "0", `"second";r=2, "minute";r=2, "hour";r=0, "day";r=1`},
		}},
		{"refused requests count where they are not refused", true, []struct {
			at    time.Duration
			n     int
			codes string
			left  string
		}{
			{0, 4, "2", `"second";r=0, "minute";r=1, "hour";r=4, "day";r=5`},
			{time.Second, 2, "1", `"second";r=0, "minute";r=0, "hour";r=2, "day";r=3`},
			{2 * time.Second, 9, "0", `"second";r=0, "minute";r=0, "hour";r=0, "day";r=0`},
		}},
	} {
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
					require.Equalf(t, s.codes, strconv.Itoa(passed), "of %d at %v", s.n, s.at)
					require.Equalf(t, s.left, untimed(last.Header().Get("RateLimit")), "at %v", s.at)
				}
			})
		})
	}
}

// untimed returns a RateLimit header without the times.
func untimed(field string) string {
	items := strings.Split(field, ", ")
	for i := range items {
		items[i], _, _ = strings.Cut(items[i], ";t=")
	}
	return strings.Join(items, ", ")
}

func TestCountRefused(t *testing.T) {
	for stacked, want := range map[bool]string{false: `"minute";r=29`, true: `"minute";r=27`} {
		synctest.Test(t, func(t *testing.T) {
			h := weirhttp.NewLimit(weirhttp.LimitConfig{
				Policies: []weirhttp.Policy{perSecond(1, weirhttp.ByNothing), perMinute(30, weirhttp.ByNothing)}, CountRefused: stacked,
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

func TestExemptRequestsAreNotCounted(t *testing.T) {
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{perSecond(1, weirhttp.ByNothing)},
		Exempt: func(r *http.Request) bool {
			addr := weirhttp.Proxies{}.ClientIP(r)
			for _, n := range networks("198.51.100.0/24", "2001:db8:1::/48") {
				if n.Contains(addr) {
					return true
				}
			}
			return r.Header.Get("X-Api-Key") == "admin" && networks("192.0.2.0/24")[0].Contains(addr) || r.URL.Path == "/health"
		},
	}).Handler(okHandler)
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
	require.Equal(t, [3]float64{3, 2, 0}, counted(l, "gold"))
	require.Equal(t, [3]float64{2, 8, 0}, counted(l, "others"))
}

func TestShadowPolicy(t *testing.T) {
	strict := perSecond(1, weirhttp.ByNothing)
	strict.Name, strict.Shadow = "strict", true
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{strict, perMinute(3, weirhttp.ByNothing)}})
	for i := range 5 {
		w := request{}.send(l.Handler(okHandler))
		require.Equal(t, i < 3, w.Code == 200)
		require.NotContains(t, w.Header().Get("RateLimit")+w.Header().Get("RateLimit-Policy"), "strict")
	}
	require.Equal(t, [3]float64{1, 0, 2}, counted(l, "strict"), "requests that another policy refuses are not counted")
	require.Equal(t, [3]float64{3, 2, 0}, counted(l, "minute"))
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		cost, want int
		left       string
	}{
		{0, 200, `"minute";r=10`}, {1, 200, `"minute";r=9`}, {10, 200, `"minute";r=0`}, {11, 429, `"minute";r=10`}, {-1, 429, `"minute";r=10`},
	} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{
			Policies: []weirhttp.Policy{perMinute(10, weirhttp.ByNothing)}, Cost: func(*http.Request) int { return c.cost },
		}).Handler(okHandler)
		w := request{}.send(h)
		require.Equalf(t, c.want, w.Code, "cost %d", c.cost)
		require.Equalf(t, c.left, untimed(w.Header().Get("RateLimit")), "cost %d", c.cost)
		if c.want == 429 {
			require.Emptyf(t, w.Header().Get("Retry-After"), "a cost of %d is never allowed", c.cost)
			require.NotContains(t, w.Header().Get("RateLimit"), ";t=")
		}
	}
}

func TestCharge(t *testing.T) {
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{perMinute(10, weirhttp.ByIP)}})
	login := l.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.Charge(r, 4)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	require.Equal(t, 401, request{}.send(login).Code)
	w := request{}.send(login)
	require.Equal(t, `"minute";r=4`, untimed(w.Header().Get("RateLimit")), "after a charged request (1+4) and another one")
	require.Equal(t, 429, request{}.send(login).Code, "the charge has used up the quota")
	require.Equal(t, 401, request{from: "192.0.2.99:1"}.send(login).Code, "other clients are not charged")
}

func TestConcurrentCharges(t *testing.T) {
	for range 1000 {
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{perMinute(7, weirhttp.ByIP)}})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { l.Charge(httptest.NewRequest(http.MethodGet, "/", http.NoBody), 5) })
		}
		both.Wait()
		require.Equal(t, 429, request{}.send(l.Handler(http.NotFoundHandler())).Code)
	}
}

func TestReconfigureKeepsQuotas(t *testing.T) {
	changed := func(p weirhttp.Policy, change func(*weirhttp.Policy)) []weirhttp.Policy {
		change(&p)
		return []weirhttp.Policy{p}
	}
	first := perMinute(10, weirhttp.ByIP)
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
		{"one more", []weirhttp.Policy{first, perSecond(10, weirhttp.ByNothing)}, `"minute";r=5, "second";r=9`},
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
				require.Equal(t, c.want, untimed(request{}.send(h).Header().Get("RateLimit")))
			})
		})
	}
}

func TestReconfigureOfAShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := perMinute(2, weirhttp.ByNothing)
		policy.Shadow = true
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
		for range 5 {
			require.Equal(t, 200, request{}.send(l.Handler(okHandler)).Code)
		}
		policy.Shadow = false
		require.NoError(t, l.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}))
		require.Equal(t, 429, request{}.send(l.Handler(okHandler)).Code, "requests in shadow mode are taken from the quota")
		require.Equal(t, [3]float64{2, 1, 3}, counted(l, "minute"), "the counters continue")
	})
}

func TestInvalidReconfigureChangesNothing(t *testing.T) {
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{perMinute(10, weirhttp.ByNothing)}})
	require.Error(t, l.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{perMinute(20, weirhttp.ByNothing), {Name: "second"}}}))
	require.Equal(t, `"minute";r=9`, untimed(request{}.send(l.Handler(okHandler)).Header().Get("RateLimit")))
}

func TestReconfigureDuringRequests(t *testing.T) {
	policies := func(n int) weirhttp.LimitConfig {
		return weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "hour", Rate: limiter.Per(float64(n), time.Hour), Burst: n, By: weirhttp.ByNothing}, perMinute(1000, weirhttp.ByIP)}}
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
		observed(l)
	}
	all.Wait()
	require.LessOrEqual(t, passed.Load(), int64(101), "Reconfigure has not refilled a quota")
	require.GreaterOrEqual(t, passed.Load(), int64(100))
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

func TestFloodOfKeysIsBoundedAndEvictsNoKeyInUse(t *testing.T) {
	policy := weirhttp.Policy{Name: "client", Rate: limiter.Per(1, time.Hour), Burst: 1, By: byAPIKey, MaxKeys: 1000}
	for _, c := range []struct {
		overflow limiter.Overflow
		stranger int
	}{{limiter.RefuseNew, 429}, {limiter.PassNew, 200}, {limiter.ShareNew, 429}} {
		t.Run(string(c.overflow), func(t *testing.T) {
			policy.Overflow = c.overflow
			l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
			h := l.Handler(okHandler)
			require.Equal(t, 200, request{key: "first"}.send(h).Code)
			for i := range 20_000 {
				request{key: "flood" + strconv.Itoa(i)}.send(h)
			}
			require.Equal(t, 429, request{key: "first"}.send(h).Code, "the quota is still used up")
			require.Equal(t, c.stranger, request{key: "stranger"}.send(h).Code)
			require.LessOrEqual(t, observed(l)["keys client"], 1000.0)
		})
	}
}

func TestRequestWithoutRoomTakesNothing(t *testing.T) {
	full := weirhttp.Policy{Name: "client", Rate: limiter.Per(1, time.Hour), Burst: 1, By: byAPIKey, MaxKeys: 1}
	for _, policies := range [][]weirhttp.Policy{{perMinute(10, weirhttp.ByNothing), full}, {full, perMinute(10, weirhttp.ByNothing)}} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies}).Handler(okHandler)
		require.Equal(t, 200, request{key: "first"}.send(h).Code)
		require.Equal(t, 200, request{key: "second"}.send(h).Code, "the quota of its network for new keys")
		for range 20 {
			w := request{key: "stranger"}.send(h)
			require.Equal(t, 429, w.Code)
			require.Contains(t, w.Header().Get("RateLimit"), `"minute";r=8`)
			require.Contains(t, w.Header().Get("RateLimit"), `"client";r=0`)
		}
	}
}

func TestLongKeysAreDistinct(t *testing.T) {
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{perMinute(1, byAPIKey)},
	}).Handler(okHandler)
	long := strings.Repeat("k", 1<<20)
	for _, c := range []struct {
		key  string
		want int
	}{{long, 200}, {long, 429}, {long + "x", 200}, {long[:64], 200}, {long[:65], 200}, {long[:64], 429}} {
		require.Equalf(t, c.want, request{key: c.key}.send(h).Code, "a key of %d bytes", len(c.key))
	}
}

func TestLongClientKeysAreNotKept(t *testing.T) {
	for what, client := range map[string]func(*http.Request) string{
		"a long key":                  byAPIKey,
		"a short part of a long text": func(r *http.Request) string { return r.Header.Get("X-Api-Key")[:8] },
	} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{perMinute(1, client)}}).Handler(okHandler)
		before := heapInUse()
		for i := range 50 {
			require.Equal(t, 200, request{key: fmt.Sprintf("%08d", i) + strings.Repeat("k", 1<<20)}.send(h).Code)
		}
		require.Less(t, heapInUse()-before, int64(10<<20), "%s: keys of 50 MB were sent", what)
		runtime.KeepAlive(h)
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestOnRefusalGetsTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []weirhttp.Refusal
		mux := http.NewServeMux()
		mux.Handle("GET /a", okHandler)
		h := weirhttp.NewLimit(weirhttp.LimitConfig{
			Policies:  []weirhttp.Policy{perMinute(1, weirhttp.ByIP), perSecond(1, weirhttp.ByNothing), {Name: "hour", Rate: limiter.Per(5, time.Hour), Burst: 5, By: weirhttp.ByNothing}},
			OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { told = append(told, f) },
		}).Handler(mux)
		for range 2 {
			request{from: "192.0.2.1:1", path: "/a"}.send(h)
		}
		require.Equal(t, []weirhttp.Refusal{{
			Status: 429, Policies: []string{"minute", "second"}, RetryAfter: time.Minute,
		}}, told)
	})
}

func TestAnswer(t *testing.T) {
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{perMinute(1, weirhttp.ByNothing)},
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
