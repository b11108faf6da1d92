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

// A page of a gate and a breaker, among the debug pages of a program.
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
	// Sources that are created later are added with Add.
	fmt.Println(page.Add(breaker.New("users-api", breaker.Config{})))
	fmt.Println(page.Add(breaker.New("users-api", breaker.Config{})) != nil, "for a second source of that name")
	// Output:
	// <nil>
	// true for a second source of that name
}

// The Shutdown of an http.Server ends the page's streams. With another kind of server, call Close.
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
