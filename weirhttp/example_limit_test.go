package weirhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

func show(h http.Handler, r *http.Request, headers ...string) {
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

func ask(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, http.NoBody) }

// Two periods at once, for each client address.
func ExampleLimit() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "hour", Limit: 2, Span: time.Hour, By: weirhttp.ByIP},
		{Name: "day", Limit: 24, Span: 24 * time.Hour, By: weirhttp.ByIP},
	}})
	server := limit.Handler(hello)
	for range 3 {
		show(server, ask("/"), "RateLimit")
	}
	// Output:
	// 200 RateLimit: "hour";r=1;t=1800, "day";r=23;t=82800
	// 200 RateLimit: "hour";r=0;t=1800, "day";r=22;t=79200
	// 429 RateLimit: "hour";r=0;t=1800, "day";r=22
}

// Behind a proxy of one's own, by API key and by route, with a front door for the monitoring.
func ExampleLimitConfig() {
	mux := http.NewServeMux()
	mux.Handle("GET /search", hello)
	mux.Handle("GET /health", hello)
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{
			{Name: "key", Limit: 1, Span: time.Minute, By: weirhttp.ByClient | weirhttp.ByRoute},
			{Name: "network", Limit: 1000, Span: time.Minute, By: weirhttp.ByIP},
		},
		Exempt:  []weirhttp.Match{{Routes: []string{"GET /health"}}, {Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25")}}},
		Proxies: weirhttp.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Client:  weirhttp.FromHeader("X-Api-Key"),
		Route:   weirhttp.RouteOf(mux),
	})
	server := limit.Handler(mux)
	for range 2 {
		show(server, ask("/search"), "Retry-After")
		show(server, ask("/health"), "Retry-After")
	}
	// Output:
	// 200
	// 200
	// 429 Retry-After: 60
	// 200
}

// A limit changes while requests come, and nobody's quota begins anew.
func ExampleLimit_Reconfigure() {
	policy := weirhttp.Policy{Name: "hour", Limit: 10, Span: time.Hour, By: weirhttp.ByIP}
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
	show(limit.Handler(hello), ask("/"), "RateLimit")

	policy.Limit = 5
	if err := limit.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}); err != nil {
		fmt.Println(err)
	}
	show(limit.Handler(hello), ask("/"), "RateLimit")

	policy.Limit = 0
	fmt.Println(limit.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}))
	// Output:
	// 200 RateLimit: "hour";r=9;t=3240
	// 200 RateLimit: "hour";r=4;t=2880
	// weirhttp: policy "hour": Limit is 0, must lie between 1 and 1000000000
}

// A login that fails costs five requests.
func ExampleLimit_Charge() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "login", Limit: 12, Span: time.Hour, By: weirhttp.ByIP}}})
	login := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit.Charge(r, 4)
		http.Error(w, "wrong password", http.StatusUnauthorized)
	}))
	for range 4 {
		show(login, ask("/"))
	}
	// Output:
	// 401
	// 401
	// 401
	// 429
}

// What some clients have bought.
func ExampleMatch() {
	gold := []weirhttp.Match{{Clients: []string{"key-of-acme", "key-of-emca"}}}
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{
			{Name: "gold", Limit: 10_000, Span: time.Hour, By: weirhttp.ByClient, Only: gold},
			{Name: "free", Limit: 100, Span: time.Hour, By: weirhttp.ByClient, Except: gold},
		},
		Client: weirhttp.FromHeader("X-Api-Key"),
	})
	r := ask("/")
	show(limit.Handler(hello), r, "RateLimit-Policy")
	r.Header.Set("X-Api-Key", "key-of-acme")
	show(limit.Handler(hello), r, "RateLimit-Policy")
	// Output:
	// 200 RateLimit-Policy: "free";q=100;w=3600
	// 200 RateLimit-Policy: "gold";q=10000;w=3600
}

// A policy that refuses nothing yet, to see what it would do.
func ExamplePolicy() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "trial", Limit: 1, Span: time.Hour, Shadow: true}}})
	for range 3 {
		show(limit.Handler(hello), ask("/"))
	}
	fmt.Println(observed(limit)["requests trial shadowed"], "would have been refused")
	// Output:
	// 200
	// 200
	// 200
	// 2 would have been refused
}

// A quota for each address on each route.
func ExampleBy() {
	fmt.Println(weirhttp.Policy{Name: "p", Limit: 1, Span: time.Second, By: weirhttp.ByIP | weirhttp.ByRoute}.Validate())
	// Output: <nil>
}

// The right-most address that is no proxy's; the client made up what stands left of it.
func ExampleProxies() {
	proxies := weirhttp.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	r := ask("/")
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "8.8.8.8, 203.0.113.9, 10.0.0.2")
	fmt.Println(proxies.ClientIP(r))
	// Output: 203.0.113.9
}

// An answer for people instead of programs.
func ExampleRefusal() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{{Name: "hour", Limit: 1, Span: time.Hour}},
		Answer: func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
			w.WriteHeader(f.Status)
			fmt.Fprintf(w, "Please come back in %v.", f.RetryAfter.Round(time.Minute))
		},
	})
	for range 2 {
		w := httptest.NewRecorder()
		limit.Handler(hello).ServeHTTP(w, ask("/"))
		fmt.Println(w.Body)
	}
	// Output:
	// hello
	// Please come back in 1h0m0s.
}

// No more than one request at once; the second comes while the first is being served.
func ExampleShed() {
	inFlight := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 1})
	shed := weirhttp.NewShed("api", inFlight, weirhttp.ShedConfig{RetryAfter: 5 * time.Second})
	show(shed.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		show(shed.Handler(hello), ask("/"), "Retry-After")
	})), ask("/"))
	// Output:
	// 503 Retry-After: 5
	// 200
}

// Requests that find no room wait a little for their turn.
func ExampleShedConfig() {
	c := weirhttp.ShedConfig{MaxWait: 50 * time.Millisecond}
	fmt.Println(c.Validate())
	// Output: <nil>
}

// While the handler fails, yesterday's page is better than none.
func ExampleBreaker() {
	search := breaker.New("search", breaker.Config{ConsecutiveFailures: 2})
	server := weirhttp.Breaker(search, weirhttp.BreakerConfig{
		Answer: func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
			fmt.Fprint(w, "yesterday's page, for the breaker is open: ", errors.Is(f.Err, breaker.ErrOpen))
		},
	})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no index", http.StatusInternalServerError)
	}))
	for range 3 {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, ask("/"))
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

// A breaker for each route of a mux.
func ExampleBreakers() {
	mux := http.NewServeMux()
	mux.Handle("GET /good", hello)
	mux.HandleFunc("GET /bad", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusInternalServerError) })
	routes := breaker.NewGroup[string]("routes", breaker.GroupConfig{Breaker: breaker.Config{ConsecutiveFailures: 1}})
	server := weirhttp.Breakers(routes, weirhttp.BreakerConfig{Route: weirhttp.RouteOf(mux)})(mux)
	show(server, ask("/bad"))
	show(server, ask("/bad"), "Retry-After")
	show(server, ask("/good"))
	// Output:
	// 500
	// 503 Retry-After: 5
	// 200
}

// A handler that says it is overloaded is not broken.
func ExampleBreakerConfig() {
	c := weirhttp.BreakerConfig{Classify: func(_ *http.Request, status int) breaker.Outcome {
		switch {
		case status == http.StatusServiceUnavailable:
			return breaker.Ignored
		case status >= http.StatusInternalServerError:
			return breaker.Failure
		}
		return breaker.Success
	}}
	b := breaker.New("api", breaker.Config{ConsecutiveFailures: 1})
	show(weirhttp.Breaker(b, c)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })), ask("/"))
	fmt.Println(b.State())
	// Output:
	// 503
	// closed
}

// A limiter of one's own: here a window on this machine, as well one of a fleet.
func ExampleLimitBy() {
	window := limiter.NewSlidingWindow(limiter.SlidingWindowConfig{Limit: 1, Window: time.Minute, Buckets: 1})
	limit := weirhttp.LimitBy(func(*http.Request) (limiter.Result, error) { return window.Take(1), nil },
		weirhttp.LimitByConfig{Name: "all"})
	server := limit(hello)
	show(server, ask("/"), "RateLimit")
	show(server, ask("/"))
	// Output:
	// 200 RateLimit: "all";r=0
	// 429
}

// Answers of one's own keep what the middleware has set.
func ExampleLimitByConfig() {
	queue := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: 1})
	limit := weirhttp.LimitBy(func(*http.Request) (limiter.Result, error) { return queue.Take(1), nil }, weirhttp.LimitByConfig{
		Name: "queue",
		Answer: func(w http.ResponseWriter, _ *http.Request, _ weirhttp.Refusal) {
			http.Error(w, "the queue is full", http.StatusServiceUnavailable)
		},
	})
	server := limit(hello)
	for range 2 {
		show(server, ask("/"), "Retry-After")
	}
	// Output:
	// 200
	// 503 Retry-After: 60
}
