package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
)

func ExampleHandler() {
	payments := weir.New("payments", weir.Config{})
	users := breaker.New("users-api", breaker.Config{})

	mux := http.NewServeMux()
	mux.Handle("/debug/weir/", http.StripPrefix("/debug/weir", dashboard.Handler(payments, users)))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/weir/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

func ExampleNew() {
	page := dashboard.New(dashboard.Config{
		Title:   "storefront, Hamburg",
		History: 30 * time.Minute,
		Clients: 8,
	})
	// Sources that come later are added when they do.
	fmt.Println(page.Add(breaker.New("users-api", breaker.Config{})))
	fmt.Println(page.Add(breaker.New("users-api", breaker.Config{})) != nil, "for a second one of that name")
	// Output:
	// <nil>
	// true for a second one of that name
}

// A server that is shut down ends the page's streams by itself. A server of
// another kind, or none yet, leaves that to Close.
func ExamplePage_Close() {
	page := dashboard.Handler()
	page.Close()

	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/stream", nil))
	fmt.Println(w.Code)
	// Output: 503
}

func ExampleConfig() {
	fmt.Println(dashboard.Config{Interval: time.Millisecond}.Validate())
	// Output: dashboard: Interval is 1ms, must be from 100ms to 1m0s
}

func ExamplePage() {
	var page http.Handler = dashboard.Handler(breaker.New("users-api", breaker.Config{}))

	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/snapshot.json", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 application/json
}
