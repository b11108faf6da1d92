package dashboard_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
)

// The page of a program with a gate and a breaker, among its debug pages.
func Example() {
	payments := weir.New("payments", weir.Config{})
	users := breaker.New("users-api", breaker.Config{})

	page, err := dashboard.New(dashboard.Config{}, payments, users)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/weir/", http.StripPrefix("/debug/weir", page))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/weir/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

func ExampleNew() {
	page, err := dashboard.New(dashboard.Config{
		Title:   "storefront, Hamburg",
		History: 30 * time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	// Sources that are made later are added then.
	fmt.Println(page.Add(breaker.New("users-api", breaker.Config{})))
	fmt.Println(page.Add(breaker.New("users-api", breaker.Config{})) != nil, "for a second one of that name")
	// Output:
	// <nil>
	// true for a second one of that name
}

// A server that is shut down ends the page's streams by itself. A server of
// another kind, or none yet, leaves that to Close.
func ExamplePage_Close() {
	page, _ := dashboard.New(dashboard.Config{})
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
	page, err := dashboard.New(dashboard.Config{}, breaker.New("users-api", breaker.Config{}))
	if err != nil {
		log.Fatal(err)
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/snapshot.json", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 application/json
}
