package weirhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

var helloHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

func printResponse(h http.Handler, r *http.Request, headers ...string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Print(w.Code)
	for _, name := range headers {
		if value := w.Header().Get(name); value != "" {
			fmt.Printf(" %s: %s", name, value)
		}
	}
	fmt.Println()
}

func newRequestTo(path string) *http.Request {
	return httptest.NewRequest(http.MethodGet, path, http.NoBody)
}

// A limit of two requests in any hour per user. Users are identified by the header X-Api-Key, or by
// their address if it is missing.
func ExampleNewLimit() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "hour", Limit: 2, Window: time.Hour, By: weirhttp.ByHeader("X-Api-Key")},
	}})
	server := limit.Handler(helloHandler)
	for _, key := range []string{"ann", "ann", "ann", "bob"} {
		r := newRequestTo("/")
		r.Header.Set("X-Api-Key", key)
		printResponse(server, r, "Retry-After")
	}
	// Output:
	// 200
	// 200
	// 429 Retry-After: 3600
	// 200
}

// Several limits per client address. The headers have the remaining requests of each.
func ExampleLimit() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "hour", Limit: 2, Window: time.Hour, By: weirhttp.ByIP},
		{Name: "day", Rate: limiter.Per(24, 24*time.Hour), Burst: 24, By: weirhttp.ByIP},
	}})
	server := limit.Handler(helloHandler)
	for range 3 {
		printResponse(server, newRequestTo("/"), "RateLimit")
	}
	// Output:
	// 200 RateLimit: "hour";r=1;t=3600, "day";r=23;t=82800
	// 200 RateLimit: "hour";r=0;t=3600, "day";r=22;t=79200
	// 429 RateLimit: "hour";r=0;t=3600, "day";r=22
}

// A limit behind a proxy, by API key and route. Requests of the monitoring are not limited.
func ExampleLimitConfig() {
	mux := http.NewServeMux()
	mux.Handle("GET /search", helloHandler)
	mux.Handle("GET /health", helloHandler)
	limited := func(r *http.Request) bool { return r.URL.Path != "/health" }
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{
			{Name: "key", Limit: 1, Window: time.Minute, When: limited, By: weirhttp.Combine(weirhttp.ByHeader("X-Api-Key"), weirhttp.ByRoute(mux))},
			{Name: "network", Limit: 1000, Window: time.Minute, When: limited, By: weirhttp.ByIP},
		},
		Proxies: weirhttp.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	})
	server := limit.Handler(mux)
	for range 2 {
		printResponse(server, newRequestTo("/search"), "Retry-After")
		printResponse(server, newRequestTo("/health"), "Retry-After")
	}
	// Output:
	// 200
	// 200
	// 429 Retry-After: 60
	// 200
}

// The config can change while requests are served. The quotas keep their remaining requests.
func ExampleLimit_Reconfigure() {
	policy := weirhttp.Policy{Name: "hour", Limit: 10, Window: time.Hour, By: weirhttp.ByIP}
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
	printResponse(limit.Handler(helloHandler), newRequestTo("/"), "RateLimit")

	policy.Limit = 5
	if err := limit.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}); err != nil {
		fmt.Println(err)
	}
	printResponse(limit.Handler(helloHandler), newRequestTo("/"), "RateLimit")

	policy.Limit = -1
	fmt.Println(limit.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}))
	// Output:
	// 200 RateLimit: "hour";r=9;t=3600
	// 200 RateLimit: "hour";r=3;t=3600
	// weirhttp: policy "hour": Limit is -1, must be between 1 and 1000000000
}

// A failed login costs five requests.
func ExampleLimit_Charge() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "login", Limit: 12, Window: time.Hour, By: weirhttp.ByIP}}})
	login := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit.Charge(r, 4)
		http.Error(w, "wrong password", http.StatusUnauthorized)
	}))
	for range 4 {
		printResponse(login, newRequestTo("/"))
	}
	// Output:
	// 401
	// 401
	// 401
	// 429
}

// One policy per plan, and one in shadow mode, which counts what it would refuse.
func ExamplePolicy() {
	key := weirhttp.ByHeader("X-Api-Key")
	gold := func(r *http.Request) bool { return key(r) == "key-of-acme" }
	free := func(r *http.Request) bool { return !gold(r) }
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "gold", Limit: 10_000, Window: time.Hour, By: key, When: gold},
		{Name: "free", Limit: 100, Window: time.Hour, By: key, When: free},
		{Name: "planned", Limit: 1, Window: time.Hour, By: key, Shadow: true},
	}})
	r := newRequestTo("/")
	printResponse(limit.Handler(helloHandler), r, "RateLimit-Policy")
	r.Header.Set("X-Api-Key", "key-of-acme")
	printResponse(limit.Handler(helloHandler), r, "RateLimit-Policy")
	printResponse(limit.Handler(helloHandler), r, "RateLimit-Policy")
	fmt.Println(readMetrics(limit)["requests planned shadowed"], "would have been refused")
	// Output:
	// 200 RateLimit-Policy: "free";q=100;w=3600
	// 200 RateLimit-Policy: "gold";q=10000;w=3600
	// 200 RateLimit-Policy: "gold";q=10000;w=3600
	// 1 would have been refused
}

// Each address has a quota per route.
func ExampleCombine() {
	mux := http.NewServeMux()
	mux.Handle("/cats/{id}", helloHandler)
	mux.Handle("/dogs/{id}", helloHandler)
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "route", Limit: 1, Window: time.Minute, By: weirhttp.Combine(weirhttp.ByIP, weirhttp.ByRoute(mux))},
	}})
	for _, path := range []string{"/cats/1", "/cats/2", "/dogs/1"} {
		printResponse(limit.Handler(mux), newRequestTo(path))
	}
	// Output:
	// 200
	// 429
	// 200
}

// The client's address is the right-most one that is not a trusted proxy's. The client may have
// invented the others.
func ExampleProxies() {
	proxies := weirhttp.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	r := newRequestTo("/")
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "8.8.8.8, 203.0.113.9, 10.0.0.2")
	fmt.Println(proxies.ClientIP(r))
	// Output: 203.0.113.9
}

// Answer can write a response for people instead of one for programs.
func ExampleRefusal() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{{Name: "hour", Limit: 1, Window: time.Hour, By: weirhttp.ByNothing}},
		Answer: func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
			w.WriteHeader(f.Status)
			fmt.Fprintf(w, "Please come back in %v.", f.RetryAfter.Round(time.Minute))
		},
	})
	for range 2 {
		w := httptest.NewRecorder()
		limit.Handler(helloHandler).ServeHTTP(w, newRequestTo("/"))
		fmt.Println(w.Body)
	}
	// Output:
	// hello
	// Please come back in 1h0m0s.
}

// At most one request is served at once. The second arrives while the first is served.
func ExampleShed() {
	inFlight := inflight.New(inflight.Config{Limit: 1, Name: "api"})
	shed := weirhttp.Shed(inFlight, weirhttp.ShedConfig{RetryAfter: 5 * time.Second})
	printResponse(shed(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		printResponse(shed(helloHandler), newRequestTo("/"), "Retry-After")
	})), newRequestTo("/"))
	// Output:
	// 503 Retry-After: 5
	// 200
}

// Requests of the shop's own pages come before those of crawlers, and each customer gets an equal
// share.
func ExampleShedConfig() {
	inFlight := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 100, Queue: inflight.Queue{Target: 20 * time.Millisecond}})
	shed := weirhttp.Shed(inFlight, weirhttp.ShedConfig{Caller: func(r *http.Request) inflight.Caller {
		c := inflight.Caller{Tenant: r.Header.Get("X-Customer")}
		if strings.Contains(r.UserAgent(), "bot") {
			c.Priority = inflight.Low
		}
		return c
	}})
	printResponse(shed(helloHandler), newRequestTo("/"))
	// Output: 200
}

// While the handler fails, Answer writes an older page.
func ExampleGuard() {
	search := weir.New("search", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 2}})
	server := weirhttp.Guard(weirhttp.ForAll(search), weirhttp.GuardConfig{
		Answer: func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
			fmt.Fprint(w, "yesterday's page, for the breaker is open: ", errors.Is(f.Err, breaker.ErrOpen))
		},
	})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no index", http.StatusInternalServerError)
	}))
	for range 3 {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, newRequestTo("/"))
		text, _ := io.ReadAll(w.Body)
		fmt.Printf("%d %s\n", w.Code, text)
	}
	// Output:
	// 500 no index
	//
	// 500 no index
	//
	// 200 yesterday's page, for the breaker is open: true
}

// Each route of a mux has its own gate.
func ExampleGuard_routes() {
	mux := http.NewServeMux()
	mux.Handle("GET /good", helloHandler)
	mux.HandleFunc("GET /bad", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusInternalServerError) })
	routes := weir.NewGroup[string]("routes", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}})
	server := weirhttp.Guard(weirhttp.Per(routes, weirhttp.ByRoute(mux)), weirhttp.GuardConfig{})(mux)
	printResponse(server, newRequestTo("/bad"))
	printResponse(server, newRequestTo("/bad"), "Retry-After")
	printResponse(server, newRequestTo("/good"))
	// Output:
	// 500
	// 503 Retry-After: 1
	// 200
}

// For this service, a response with status 503 is not a failure.
func ExampleGuardConfig() {
	c := weirhttp.GuardConfig{Classify: func(_ *http.Request, status int) breaker.Outcome {
		switch {
		case status == http.StatusServiceUnavailable:
			return breaker.Ignored
		case status >= http.StatusInternalServerError:
			return breaker.Failure
		}
		return breaker.Success
	}}
	gate := weir.New("api", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}})
	printResponse(weirhttp.Guard(weirhttp.ForAll(gate), c)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})), newRequestTo("/"))
	fmt.Println(gate.Breaker().State())
	// Output:
	// 503
	// closed
}
