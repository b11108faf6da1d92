package weirtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirtest"
)

// This file has the code of docs/testing.md.

//readme:prices

// Prices asks a service for prices. It remembers the last one, for calls that are refused.
type Prices struct {
	gate  *weir.Gate
	fetch func(ctx context.Context) (int, error)
	last  int
}

func (p *Prices) Get(ctx context.Context) (int, error) {
	price, err := weir.DoOr(ctx, p.gate, p.fetch, func(context.Context, error) (int, error) { return p.last, nil })
	if err == nil {
		p.last = price
	}
	return price, err
}

//readme:end

//readme:outage

func TestPricesDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		var transitions weirtest.Transitions
		prices := &Prices{
			gate: weir.New("prices", weir.Config{Breaker: breaker.Config{
				Cooldown: 5 * time.Second,
				OnChange: transitions.Record,
			}}),
			fetch: func(ctx context.Context) (int, error) { return 7, service.Call(ctx) },
		}
		if price, err := prices.Get(t.Context()); price != 7 || err != nil {
			t.Fatal(price, err)
		}

		service.Always(weirtest.Answer{Err: weirtest.ErrDown})
		for range 20 {
			_, _ = prices.Get(t.Context())
		}
		transitions.Want(t, breaker.Open)

		calls := service.Calls()
		if price, err := prices.Get(t.Context()); price != 7 || err != nil {
			t.Error("want the last price while the breaker is open:", price, err)
		}
		if service.Calls() != calls {
			t.Error("an open breaker called the service")
		}

		service.Always(weirtest.Answer{})
		time.Sleep(5 * time.Second) // no real time passes
		for range 600 {
			_, _ = prices.Get(t.Context())
			time.Sleep(100 * time.Millisecond)
		}
		if got := prices.gate.Breaker().State(); got != breaker.Closed {
			t.Error("after the outage the breaker is", got)
		}
	})
}

//readme:end

//readme:forced

func TestPricesWithAnOpenBreaker(t *testing.T) {
	var service weirtest.Service
	gate := weir.New("prices", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "a test")
	weirtest.WantRefused(t, gate.Run(t.Context(), service.Call), breaker.ErrOpen)

	gate.Breaker().Release()
	if err := gate.Run(t.Context(), service.Call); err != nil {
		t.Error(err)
	}
}

//readme:end

//readme:package-variable

var search = weir.New("search", weir.Config{Rate: limiter.PerSecond(1), Burst: 2})

func TestSearchIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * time.Second) // the bucket is full, whatever another test has taken
		var service weirtest.Service
		for range 2 {
			if err := search.Run(t.Context(), service.Call); err != nil {
				t.Error(err)
			}
		}
		weirtest.WantRefused(t, search.Run(t.Context(), service.Call), limiter.ErrLimited)
		time.Sleep(time.Second)
		if err := search.Run(t.Context(), service.Call); err != nil {
			t.Error(err)
		}
	})
}

//readme:end

//readme:client

func TestTheClientObeysRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		service.Next(1, weirtest.Answer{Status: 429, Header: http.Header{"Retry-After": {"30"}}})
		gate := weir.New("search", weir.Config{})
		client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: &service})}
		get := func() error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://search.example/", http.NoBody)
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
		if err := get(); err != nil {
			t.Error(err)
		}
		err := get()
		weirtest.WantRefused(t, err, weir.ErrRefused)

		time.Sleep(weir.RetryAfter(err)) // at least 30s
		if err := get(); err != nil {
			t.Error(err)
		}
	})
}

//readme:end

//readme:slow

func TestACallThatHangsEndsWithItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		service.Always(weirtest.Answer{Hang: true})
		gate := weir.New("prices", weir.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := gate.Run(ctx, service.Call); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

//readme:end

//readme:alert

func TestAnAlertFiresDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		var alerts weirtest.Alerts
		gate := weir.New("payments", weir.Config{})
		monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{&alerts}}, alert.Rule{
			Name:  "payments fail",
			Value: alert.FailureRate(gate, time.Minute), // refused calls count as failed
			When:  alert.Above(0.05),
			For:   30 * time.Second,
		})
		go monitor.Run(t.Context()) // ends with the test

		callFor := func(d time.Duration) {
			for range int(d / (100 * time.Millisecond)) {
				_ = gate.Run(t.Context(), service.Call)
				time.Sleep(100 * time.Millisecond)
			}
		}
		callFor(time.Minute)
		alerts.Want(t, "payments fail")

		service.Always(weirtest.Answer{Err: weirtest.ErrDown})
		callFor(time.Minute)
		alerts.Want(t, "payments fail", alert.Firing)

		service.Always(weirtest.Answer{})
		callFor(5 * time.Minute)
		alerts.Want(t, "payments fail", alert.Firing, alert.Resolved)
	})
}

//readme:end

//readme:handler

func TestAClientMaySendTwoRequestsPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
			{Name: "minute", Limit: 2, Window: time.Minute, By: weirhttp.ByIP},
		}})
		handler := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}))
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
			return w
		}
		for _, want := range []int{204, 204, 429} {
			if w := ask(); w.Code != want {
				t.Error(w.Code, "want", want)
			}
		}
		if !json.Valid(ask().Body.Bytes()) { // a problem of RFC 9457
			t.Error("the answer is not JSON")
		}
		time.Sleep(time.Minute)
		if w := ask(); w.Code != http.StatusNoContent {
			t.Error(w.Code)
		}
	})
}

//readme:end

// docs/testing.md has these numbers of failures. Each is the least f ≥ 10 + ⌊(successes + f) / 6⌋.
func TestFailuresThatOpenADefaultBreaker(t *testing.T) {
	for successes, want := range map[int]int{0: 11, 20: 15, 100: 31, 600: 131} {
		synctest.Test(t, func(t *testing.T) {
			var service weirtest.Service
			b := breaker.New("prices", breaker.Config{})
			for range successes {
				_ = b.Run(t.Context(), service.Call)
			}
			service.Always(weirtest.Answer{Err: weirtest.ErrDown})
			failures := 0
			for ; b.State() == breaker.Closed; failures++ {
				_ = b.Run(t.Context(), service.Call)
			}
			if failures != want {
				t.Errorf("after %d successes the breaker opened at failure %d, want %d", successes, failures, want)
			}
		})
	}
}
