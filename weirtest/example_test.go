package weirtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirtest"
)

// printer takes the place of the testing.T of a test, and prints its failures.
type printer struct{ testing.TB }

func (printer) Helper() {}

func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

var t printer

// An outage opens the breaker of a gate, which then calls the service no more.
func Example() {
	var service weirtest.Service
	var transitions weirtest.Transitions
	gate := weir.New("payments", weir.Config{Breaker: breaker.Config{OnChange: transitions.Record}})

	service.Always(weirtest.Answer{Err: weirtest.ErrDown})
	for range 20 {
		_ = gate.Run(context.Background(), service.Call)
	}
	transitions.Want(t, breaker.Open)

	calls := service.Calls()
	err := gate.Run(context.Background(), service.Call)
	weirtest.WantRefused(t, err, breaker.ErrOpen)
	fmt.Println(service.Calls() - calls)
	// Output: 0
}

// A client gets one answer that asks it to wait, and then good ones.
func ExampleService() {
	var service weirtest.Service
	service.Next(1, weirtest.Answer{Status: 503, Header: http.Header{"Retry-After": {"30"}}})
	client := http.Client{Transport: &service}
	for range 2 {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://payments.example/", http.NoBody)
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.Status, resp.Header.Get("Retry-After"))
	}
	// Output:
	// 503 Service Unavailable 30
	// 200 OK
}

// A service that is reached through a weirhttp.Transport, and says when to come back.
func ExampleService_roundTrip() {
	var service weirtest.Service
	service.Next(1, weirtest.Answer{Status: 429, Header: http.Header{"Retry-After": {"30"}}})
	gate := weir.New("search", weir.Config{})
	client := http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: &service})}
	for range 2 {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://search.example/", http.NoBody)
		resp, err := client.Do(req)
		if err != nil {
			weirtest.WantRefused(t, err, weir.ErrRefused)
			fmt.Println("refused")
			continue
		}
		_ = resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// 429 Too Many Requests
	// refused
}

func ExampleAnswer() {
	for _, a := range []weirtest.Answer{
		{},
		{Body: `{"id": 7}`},
		{Status: http.StatusNotFound},
		{Err: errors.New("connection reset")},
		{Hang: true},
	} {
		var service weirtest.Service
		service.Always(a)
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		fmt.Println("Call:", service.Call(ctx))
		cancel()
	}
	// Output:
	// Call: <nil>
	// Call: <nil>
	// Call: weirtest: status 404
	// Call: connection reset
	// Call: context deadline exceeded
}

func ExampleTransitions() {
	var transitions weirtest.Transitions
	b := breaker.New("payments", breaker.Config{OnChange: transitions.Record})
	b.Force(breaker.ForcedOpen, "a test")
	b.Release()

	transitions.Want(t, breaker.ForcedOpen, breaker.Closed)
	transitions.Want(t, breaker.Open)
	fmt.Println(transitions.All()[0].Reason)
	// Output:
	// entered states are [forced_open closed], want [open]
	// a test
}

func ExampleAlerts() {
	var alerts weirtest.Alerts
	b := breaker.New("payments", breaker.Config{})
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{&alerts}},
		alert.Rule{Name: "payments are down", Value: alert.Bool(b.Tripped), When: alert.Above(0)})

	b.OpenFor(time.Hour)
	monitor.Evaluate(time.Now())
	_ = monitor.Flush(context.Background())
	alerts.Want(t, "payments are down", alert.Firing)
	fmt.Println(alerts.All()[0].State)
	// Output: firing
}

func ExampleWantRefused() {
	weirtest.WantRefused(t, io.EOF, breaker.ErrOpen)
	weirtest.WantRefused(t, nil, weir.ErrRefused)
	// Output:
	// error is "EOF", want a refusal: "breaker: open"
	// error is "nil", want a refusal: "weir: refused"
}
