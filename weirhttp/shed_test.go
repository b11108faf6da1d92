package weirhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirhttp"
)

// requireWait fails unless a refusal of a Shed says when a slot is expected, and a response says it
// in whole seconds.
func requireWait(t *testing.T, want time.Duration, f weirhttp.Refusal) {
	t.Helper()
	full, ok := errors.AsType[*inflight.FullError](f.Err)
	require.True(t, ok, f.Err)
	require.InDelta(t, want, time.Until(full.Until), float64(want)/10)
	require.GreaterOrEqual(t, f.RetryAfter, time.Until(full.Until))
	require.Less(t, f.RetryAfter, 2*want+want/5, "up to as long again")
}

// Ten requests of 50 ms are served, one after the other. With a slot free every 50 ms, the next
// slot is expected in 50 ms. If five requests wait, a slot after them is expected in 300 ms.
func TestARefusalOfAShedSaysWhenASlotIsExpected(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := inflight.Config{Limit: 1}
			if waits {
				c.MaxWaiters, c.Queue = 5, inflight.Queue{Target: time.Minute}
			}
			var refusals []weirhttp.Refusal
			h := weirhttp.Shed(inflight.New(c), weirhttp.ShedConfig{
				OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
			})(handlerTaking(50 * time.Millisecond))
			for range 10 {
				require.Equal(t, 200, request{}.send(h).Code)
			}
			want, served := 50*time.Millisecond, []<-chan int{sendIn(t.Context(), h)}
			for range c.MaxWaiters {
				want += 50 * time.Millisecond
				served = append(served, sendIn(t.Context(), h))
			}
			w := request{}.send(h)
			require.Equal(t, 503, w.Code)
			require.Equal(t, "1", w.Header().Get("Retry-After"), "whole seconds")
			requireWait(t, want, refusals[0])
			for _, status := range served {
				require.Equal(t, 200, <-status)
			}
		})
	}
}

// Requests take 10 s. After 9 s the next slot is expected in 1 s, so the wait is 1 s and up to as
// long again, but at least that of the config.
func TestTheRetryAfterOfAShedIsAtLeastThatOfItsConfig(t *testing.T) {
	for least, want := range map[time.Duration][]string{0: {"1", "2"}, 900 * time.Millisecond: {"1", "2"}, 1500 * time.Millisecond: {"2"}} {
		synctest.Test(t, func(t *testing.T) {
			h := weirhttp.Shed(inflight.New(inflight.Config{Limit: 1}), weirhttp.ShedConfig{RetryAfter: least})(handlerTaking(10 * time.Second))
			served := sendIn(t.Context(), h)
			time.Sleep(9 * time.Second)
			require.Contains(t, want, request{}.send(h).Header().Get("Retry-After"), "at least %v", least)
			require.Equal(t, 200, <-served)
		})
	}
}

// A Shed before a Limit refuses without asking the Limit, so the response has no headers about
// quotas. Retry-After is set before Answer is called.
func TestShedBeforeALimit(t *testing.T) {
	for _, queue := range []inflight.Queue{{}, {Target: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			var got http.Header
			shed := weirhttp.Shed(inflight.New(inflight.Config{Limit: 1, Queue: queue}), weirhttp.ShedConfig{
				Answer: func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
					got = w.Header().Clone()
					w.WriteHeader(f.Status)
				},
			})
			limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(1, weirhttp.ByNothing)}, Legacy: true})
			h := shed(limit.Handler(handlerTaking(time.Minute)))
			served := sendIn(t.Context(), h)
			require.Equal(t, 503, <-sendIn(t.Context(), h))
			require.Len(t, got, 1)
			wait, err := strconv.Atoi(got.Get("Retry-After"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, wait, 1)
			require.Equal(t, 200, <-served)
			require.Equal(t, [3]float64{1, 0, 0}, requestCounts(limit, "minute"))
		})
	}
}

// handlerTaking returns a handler that takes d, unless the client disconnects.
func handlerTaking(d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			w.WriteHeader(http.StatusOK)
		case <-r.Context().Done():
		}
	})
}

// sendIn sends a request in another goroutine. The channel receives the status of the response.
func sendIn(ctx context.Context, h http.Handler) <-chan int {
	status := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		status <- w.Code
	}()
	synctest.Wait()
	return status
}

func TestShedRefusesRequestsBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flight := inflight.New(inflight.Config{Limit: 2, Name: "api"})
		var refusals []weirhttp.Refusal
		shed := weirhttp.Shed(flight, weirhttp.ShedConfig{
			RetryAfter: 2500 * time.Millisecond, OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
		})
		h := shed(handlerTaking(time.Second))
		one, two := sendIn(t.Context(), h), sendIn(t.Context(), h)
		require.Equal(t, 2, flight.InFlight())

		w := request{}.send(h)
		require.Equal(t, 503, w.Code)
		require.Equal(t, "3", w.Header().Get("Retry-After"))
		require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		var body struct {
			Type     string   `json:"type"`
			Violated []string `json:"violated-policies"`
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", body.Type)
		require.Equal(t, []string{"api"}, body.Violated)
		require.Equal(t, []string{"api"}, refusals[0].Policies)

		require.Equal(t, 200, <-one)
		require.Equal(t, 200, <-two)
		require.Equal(t, 200, request{}.send(h).Code)
		require.Zero(t, flight.InFlight())
		require.Equal(t, map[string]float64{
			"requests api allowed": 3, "requests api refused": 1, "requests api waited": 0, "requests api cancelled": 0,
			"near_limit api": 1, "waiting api": 0, "weir.inflight.call.active api": 0, "weir.inflight.limit api": 2,
		}, readMetrics(flight))
	})
}

func TestShedWaitsAsTheQueueSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flight := inflight.New(inflight.Config{
			Limit: 1, MaxWaiters: 2, Queue: inflight.Queue{Target: 1500 * time.Millisecond, Interval: 1500 * time.Millisecond}, Name: "api",
		})
		shed := weirhttp.Shed(flight, weirhttp.ShedConfig{})
		h := shed(handlerTaking(time.Second))
		start := time.Now()
		one, two, three := sendIn(t.Context(), h), sendIn(t.Context(), h), sendIn(t.Context(), h)
		require.Equal(t, 503, request{}.send(h).Code, "the queue is full")
		require.Zero(t, time.Since(start))
		require.Equal(t, 200, <-one)
		require.Equal(t, 503, <-three, "it would wait for 2s")
		require.Equal(t, 1500*time.Millisecond, time.Since(start))
		require.Equal(t, 200, <-two)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Zero(t, flight.InFlight())
		metrics := readMetrics(flight)
		require.Equal(t, []float64{1, 1, 2, 0}, []float64{
			metrics["requests api allowed"], metrics["requests api waited"], metrics["requests api refused"], metrics["requests api cancelled"],
		})
	})
}

func TestShedWaitsAsTheReconfiguredQueueSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFlight := inflight.New(inflight.Config{Limit: 1})
		h := weirhttp.Shed(inFlight, weirhttp.ShedConfig{})(handlerTaking(time.Second))
		first := sendIn(t.Context(), h)
		require.Equal(t, 503, request{}.send(h).Code, "no request waits")
		require.NoError(t, inFlight.Reconfigure(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: time.Minute}}))
		second := sendIn(t.Context(), h)
		require.Equal(t, 200, <-first)
		require.Equal(t, 200, <-second)
		third := sendIn(t.Context(), h)
		require.NoError(t, inFlight.Reconfigure(inflight.Config{Limit: 1}))
		require.Equal(t, 503, request{}.send(h).Code)
		require.Equal(t, 200, <-third)
	})
}

func TestShedReleasesTheWaiterOfADisconnectedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flight := inflight.New(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: time.Minute}, Name: "api"})
		shed := weirhttp.Shed(flight, weirhttp.ShedConfig{})
		h := shed(handlerTaking(time.Second))
		one := sendIn(t.Context(), h)
		ctx, leave := context.WithCancel(t.Context())
		gone, last := sendIn(ctx, h), sendIn(t.Context(), h)
		leave()
		<-gone
		require.Equal(t, 200, <-one)
		require.Equal(t, 200, <-last)
		require.Equal(t, 1.0, readMetrics(flight)["requests api cancelled"])
		require.Zero(t, flight.InFlight())
	})
}

func TestShedReleasesTheSlotOfAPanickingHandler(t *testing.T) {
	flight := inflight.New(inflight.Config{Limit: 1, Name: "api"})
	for _, with := range []any{"oops", http.ErrAbortHandler} {
		h := weirhttp.Shed(flight, weirhttp.ShedConfig{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(with) }))
		require.PanicsWithValue(t, with, func() { request{}.send(h) })
		require.Zero(t, flight.InFlight())
	}
}

func TestShedConfigFaults(t *testing.T) {
	flight := inflight.New(inflight.Config{Limit: 1, Name: "api"})
	bad := weirhttp.ShedConfig{RetryAfter: 25 * time.Hour}
	const want = "weirhttp: RetryAfter is 25h0m0s, must be between 0 and 24h"
	require.EqualError(t, bad.Validate(), want)
	require.PanicsWithError(t, want, func() { weirhttp.Shed(flight, bad) })
	require.PanicsWithError(t, "weirhttp: Shed needs a limiter", func() { weirhttp.Shed(nil, weirhttp.ShedConfig{}) })
}

func TestShedWithoutANameNamesNoPolicy(t *testing.T) {
	var refusals []weirhttp.Refusal
	shed := weirhttp.Shed(inflight.New(inflight.Config{Limit: 1}), weirhttp.ShedConfig{
		OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
	})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	shed(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		shed(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), request)
	})).ServeHTTP(httptest.NewRecorder(), request)
	require.Len(t, refusals, 1)
	require.Equal(t, http.StatusServiceUnavailable, refusals[0].Status)
	require.Empty(t, refusals[0].Policies)
}

// A queue with room for one request keeps the one that matters most.
func TestShedKnowsPrioritiesAndRetries(t *testing.T) {
	attempt := func(header, value string) http.Header { return http.Header{header: {value}} }
	for name, c := range map[string]struct {
		first, second http.Header
		config        weirhttp.ShedConfig
		stays         string
	}{
		"the same":             {nil, nil, weirhttp.ShedConfig{}, "first"},
		"a retry":              {attempt("X-Envoy-Attempt-Count", "2"), nil, weirhttp.ShedConfig{}, "second"},
		"a first attempt":      {attempt("X-Envoy-Attempt-Count", "1"), nil, weirhttp.ShedConfig{}, "first"},
		"an odd header":        {attempt("X-Envoy-Attempt-Count", "two"), nil, weirhttp.ShedConfig{}, "first"},
		"a higher priority":    {nil, attempt("X-Vip", "1"), weirhttp.ShedConfig{Caller: callerOf}, "second"},
		"one marked by Caller": {attempt("X-Retry", "1"), nil, weirhttp.ShedConfig{Caller: callerOf}, "second"},
		"the context's caller": {http.Header{"X-Context-Vip": {"1"}, "X-Envoy-Attempt-Count": {"2"}}, nil, weirhttp.ShedConfig{}, "first"},
	} {
		synctest.Test(t, func(t *testing.T) {
			flight := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 1, Queue: inflight.Queue{Target: time.Minute}})
			h := weirhttp.Shed(flight, c.config)(handlerTaking(time.Second))
			ahead := sendIn(t.Context(), h)
			statuses := map[string]int{}
			first, second := sendWith(t, h, c.first), sendWith(t, h, c.second)
			statuses["first"], statuses["second"] = <-first, <-second
			require.Equal(t, 200, <-ahead)
			other := map[string]string{"first": "second", "second": "first"}[c.stays]
			require.Equal(t, map[string]int{c.stays: 200, other: 503}, statuses, name)
		})
	}
}

func callerOf(r *http.Request) (c inflight.Caller) {
	if r.Header.Get("X-Vip") != "" {
		c.Priority = inflight.Critical
	}
	c.Retry = r.Header.Get("X-Retry") != ""
	return c
}

func sendWith(t *testing.T, h http.Handler, header http.Header) <-chan int {
	t.Helper()
	return sendIn(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range header {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
		if r.Header.Get("X-Context-Vip") != "" {
			r = r.WithContext(inflight.WithCaller(r.Context(), inflight.Caller{Priority: inflight.Critical}))
		}
		h.ServeHTTP(w, r)
	}))
}

// The handler hangs, and each client leaves after a second. Without a limit a hundred would be
// served at once.
func TestAShedLimitsRequestsThatHangUntilTheirClientsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flight := inflight.New(inflight.Config{Adaptive: true})
		shed := weirhttp.Shed(flight, weirhttp.ShedConfig{})
		quick := shed(handlerTaking(20 * time.Millisecond))
		for range 100 {
			require.Equal(t, 200, request{}.send(quick).Code)
		}
		hanging := shed(handlerTaking(time.Hour))
		for range 500 {
			ctx, leave := context.WithCancel(t.Context())
			sendIn(ctx, hanging)
			time.AfterFunc(time.Second, leave)
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, flight.InFlight(), 10)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, flight.InFlight())
	})
}

// Event streams stay open, beside requests of 2 ms. A stream has answered when it flushes, sets its
// status or takes over the connection, so the server is not slow, and refuses nothing.
func TestStreamsBehindAShedAreNotSlow(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"flush":       func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"controller":  func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"WriteHeader": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
	} {
		synctest.Test(t, func(t *testing.T) {
			flight := inflight.New(inflight.Config{Adaptive: true})
			shed := weirhttp.Shed(flight, weirhttp.ShedConfig{})
			quick := shed(handlerTaking(2 * time.Millisecond))
			streams := shed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Millisecond)
				begin(w)
				<-r.Context().Done()
			}))
			for range 50 {
				require.Equal(t, 200, request{}.send(quick).Code)
			}
			ctx, leave := context.WithCancel(t.Context())
			var open []<-chan int
			for range 200 { // four times as many as the limit is at first, and no request ends
				open = append(open, sendIn(ctx, streams))
				time.Sleep(20 * time.Millisecond)
			}
			for range 2000 {
				require.Equal(t, 200, request{}.send(quick).Code, name)
				time.Sleep(5 * time.Millisecond)
			}
			require.Equal(t, 200, flight.InFlight(), name)
			leave()
			for _, status := range open {
				require.Equal(t, 200, <-status)
			}
			require.Zero(t, flight.InFlight())
		})
	}
}

// Behind a limit that adapts the handler gets a ResponseWriter with the same optional methods as
// that of the server, and behind a fixed limit that of the server itself.
func TestAShedKeepsTheMethodsOfTheResponseWriter(t *testing.T) {
	for _, c := range []inflight.Config{{Limit: 1}, {Adaptive: true}} {
		var got http.ResponseWriter
		h := weirhttp.Shed(inflight.New(c), weirhttp.ShedConfig{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w }))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, !c.Adaptive, got == http.ResponseWriter(w))
		_, flushes := got.(http.Flusher)
		require.True(t, flushes)
		_, hijacks := got.(http.Hijacker)
		require.False(t, hijacks)
	}
}
