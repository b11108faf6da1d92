package weirhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// A server that allows two requests in any minute per address, and a client with one breaker per
// host. The client obeys the Retry-After of the server.
func Example() {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "minute", Limit: 2, Window: time.Minute, By: weirhttp.ByIP},
	}})
	server := httptest.NewServer(limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})))
	defer server.Close()

	hosts := weir.NewGroup[string]("web", weir.GroupConfig{})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{})}
	for range 4 {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			panic(err)
		}
		resp, err := client.Do(req)
		switch {
		case errors.Is(err, limiter.ErrLimited):
			fmt.Println("not sent: the server asked to wait for", weir.RetryAfter(err).Truncate(10*time.Second))
		case err != nil:
			fmt.Println(err)
		default:
			_ = resp.Body.Close()
			fmt.Println(resp.Status)
		}
	}
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
	// not sent: the server asked to wait for 1m0s
}
