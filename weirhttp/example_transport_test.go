package weirhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// hosts has one gate per host that web calls.
var hosts = weir.NewGroup[string]("web", weir.GroupConfig{})

var web = &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{})}

// get sends a request and returns the status and the body of the response.
func get(client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(text), err
}

// newBrokenServer returns a server that responds with status 503 and Retry-After.
func newBrokenServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
}

func ExampleNewTransport() {
	server := newBrokenServer()
	defer server.Close()
	for range 20 {
		_, _ = get(web, server.URL) // 503 Service Unavailable
	}

	_, err := get(web, server.URL)
	if errors.Is(err, weir.ErrRefused) {
		fmt.Println("not called for", weir.RetryAfter(err).Truncate(10*time.Second))
	}
	// Output: not called for 30s
}

// Each host has its own breaker. A host that fails is not called; other hosts are.
func ExamplePer() {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "overloaded", http.StatusInternalServerError)
	}))
	defer down.Close()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer up.Close()

	partners := weir.NewGroup[string]("partners", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{MinCalls: 5}}})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(partners, weirhttp.ByHost), weirhttp.TransportConfig{})}
	sent, refused := 0, 0
	for range 20 {
		if _, err := get(client, down.URL); errors.Is(err, breaker.ErrOpen) {
			refused++
			continue
		}
		sent++
	}
	fmt.Println(sent, "requests sent,", refused, "refused")
	fmt.Println(get(client, up.URL))
	// Output:
	// 5 requests sent, 15 refused
	// 200 OK hello <nil>
}

// A refused request is logged and gets a cached response.
func ExampleTransport() {
	server := newBrokenServer()
	defer server.Close()
	gate := weir.New("prices", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
		OnRefusal: weirhttp.LogRefusedCalls(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		Fallback: func(req *http.Request, _ error) (*http.Response, error) {
			return &http.Response{
				Status: "203 Non-Authoritative Information", StatusCode: http.StatusNonAuthoritativeInfo,
				Body: io.NopCloser(strings.NewReader("19.99 €")), Request: req,
			}, nil
		},
	})

	client := &http.Client{Transport: transport}
	for range 2 {
		fmt.Println(get(client, server.URL))
	}
	// Output:
	// 503 Service Unavailable  <nil>
	// 203 Non-Authoritative Information 19.99 € <nil>
}

// For this service, 404 is a failure. All other responses are judged as usual.
func ExampleDefaultClassify() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	gate := weir.New("catalogue", weir.Config{})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
		Classify: func(resp *http.Response, err error) breaker.Outcome {
			if err == nil && resp.StatusCode == http.StatusNotFound {
				return breaker.Failure
			}
			return weirhttp.DefaultClassify(resp, err)
		},
	})}
	_, _ = get(client, server.URL)
	fmt.Println(gate.Breaker().Counts().Failures)
	// Output: 1
}

func ExampleTransportConfig() {
	server := newBrokenServer()
	defer server.Close()
	gate := weir.New("api", weir.Config{})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
		Base:          &http.Transport{MaxIdleConnsPerHost: 100},
		MaxRetryAfter: 10 * time.Second, // the server asks for 30
	})}
	_, _ = get(client, server.URL)
	_, err := get(client, server.URL)
	fmt.Println(weir.RetryAfter(err).Truncate(10 * time.Second))
	// Output: 10s
}

// One gate guards all hosts of a service.
func ExampleForAll() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	search := weir.New("search", weir.Config{Rate: limiter.PerMinute(1)})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(search), weirhttp.TransportConfig{})}
	for range 2 {
		_, err := get(client, server.URL)
		fmt.Println(errors.Is(err, limiter.ErrLimited))
	}
	// Output:
	// false
	// true
}

// A gate function can choose between gates and groups. Requests to localhost have no gate.
func ExampleNewTransport_gateFunction() {
	payments := weir.New("payments", weir.Config{Rate: limiter.PerSecond(50), MaxWait: time.Second})
	others := weir.NewGroup[string]("others", weir.GroupConfig{})
	gate := func(r *http.Request) *weir.Gate {
		switch host := weirhttp.ByHost(r); host {
		case "payments.example":
			return payments
		case "localhost":
			return nil
		default:
			return others.Get(host)
		}
	}

	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := &http.Client{Transport: weirhttp.NewTransport(gate, weirhttp.TransportConfig{})}
	fmt.Println(get(client, server.URL))
	fmt.Println(payments.Totals().Calls(), others.Len())
	// Output:
	// 404 Not Found 404 page not found
	//  <nil>
	// 0 1
}

// An alert rule can watch each host that a client calls.
func ExamplePer_alert() {
	down := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	hosts := weir.NewGroup[string]("web", weir.GroupConfig{})
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name:  "a host fails",
		Value: alert.Each(hosts.All(), func(host *weir.Gate) alert.Value { return alert.FailureRate(host, time.Minute) }),
		When:  alert.Above(0.5),
	})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{})}
	now := time.Now()
	_, _ = get(client, server.URL)
	monitor.Evaluate(now)
	down = true
	for range 3 {
		_, _ = get(client, server.URL)
	}
	monitor.Evaluate(now.Add(time.Second))

	for _, a := range monitor.Alerts() {
		fmt.Println(a.Rule, "http://"+a.Key == server.URL)
	}
	// Output: a host fails true
}

// Two clients with different timeouts share the gates: a breaker that one of them opens refuses the
// calls of both.
func ExamplePer_shared() {
	hosts := weir.NewGroup[string]("web", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}})
	gate := weirhttp.Per(hosts, weirhttp.ByHost)
	quick := &http.Client{Transport: weirhttp.NewTransport(gate, weirhttp.TransportConfig{}), Timeout: time.Second}
	patient := &http.Client{Transport: weirhttp.NewTransport(gate, weirhttp.TransportConfig{}), Timeout: time.Minute}

	server := newBrokenServer()
	defer server.Close()
	_, _ = get(quick, server.URL)
	_, err := get(patient, server.URL)
	fmt.Println(errors.Is(err, breaker.ErrOpen))
	for host, gate := range hosts.All() {
		fmt.Println("http://"+host == server.URL, gate.Breaker().State())
	}
	// Output:
	// true
	// true open
}

func ExampleRefusedError() {
	gate := weir.New("api", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{})}
	_, err := get(client, "https://API.example.com:443/users")

	if refused, ok := errors.AsType[*weirhttp.RefusedError](err); ok {
		fmt.Println(refused)
	}
	// Output: weirhttp: api.example.com is not called: breaker "api" is forced open
}

// A response is a success when its headers arrive. A body that fails later can count as one more
// call, which failed.
func ExampleTransportConfig_bodies() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		fmt.Fprint(w, "some, and then") // the connection breaks
	}))
	defer server.Close()
	gate := weir.New("downloads", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{CountBodyFailures: true})
	_, err := get(&http.Client{Transport: transport}, server.URL)
	fmt.Println(err, gate.Totals().Successes, gate.Totals().Failures)
	// Output: unexpected EOF 1 1
}

func ExampleByHost() {
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://me@API.Example.com:443/users", http.NoBody)
	fmt.Println(weirhttp.ByHost(req))
	// Output: api.example.com
}
