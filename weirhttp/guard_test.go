package weirhttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// guard returns a Guard with one breaker.
func guard(b *breaker.Breaker, c weirhttp.GuardConfig) func(http.Handler) http.Handler {
	return weirhttp.Guard(weirhttp.ForAll(weir.Join("gate", weir.Parts{Breaker: b})), c)
}

func respondWith(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

// sendAndRecover sends a request and recovers panics of the handler.
func sendAndRecover(ctx context.Context, h http.Handler) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
	}()
	<-done
}

// endedContext is a context that the handler ends.
type endedContext struct {
	context.Context
	err   error
	ended atomic.Bool
}

func (e *endedContext) Err() error {
	if e.ended.Load() {
		return e.err
	}
	return nil
}

func contextThatEndsWith(ctx context.Context, err error) func() context.Context {
	return func() context.Context { return &endedContext{Context: ctx, err: err} }
}

func TestGuardRecordsTheOutcomeOfTheHandler(t *testing.T) {
	gone, late := contextThatEndsWith(t.Context(), context.Canceled), contextThatEndsWith(t.Context(), context.DeadlineExceeded)
	end := func(r *http.Request) { r.Context().(*endedContext).ended.Store(true) }
	for _, c := range []struct {
		what                     string
		ctx                      context.Context
		do                       func(w http.ResponseWriter, r *http.Request)
		success, failed, ignored int64
	}{
		{"nothing", t.Context(), func(http.ResponseWriter, *http.Request) {}, 1, 0, 0},
		{"writes", t.Context(), func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") }, 1, 0, 0},
		{"404", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, 1, 0, 0},
		{"499", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(499) }, 1, 0, 0},
		{"500", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, 0, 1, 0},
		{"503", t.Context(), func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusServiceUnavailable) }, 0, 1, 0},
		{"hints, and then 500", t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusInternalServerError)
		}, 0, 1, 0},
		{"500 after 200", t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("x"))
			w.WriteHeader(http.StatusInternalServerError)
		}, 1, 0, 0},
		{"panics", t.Context(), func(http.ResponseWriter, *http.Request) { panic("oops") }, 0, 1, 0},
		{"panics after 200", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK); panic("oops") }, 0, 1, 0},
		{"aborts", t.Context(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, 1, 0},
		{"ends its goroutine", t.Context(), func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, 0, 1, 0},
		{"flushes, and then panics", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); panic("oops") }, 1, 0, 0},
		{"flushes 500", t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_ = http.NewResponseController(w).Flush()
		}, 0, 1, 0},
		{"the client is gone", gone(), func(w http.ResponseWriter, r *http.Request) { end(r); w.WriteHeader(http.StatusInternalServerError) }, 0, 0, 1},
		{"the client is gone, panics", gone(), func(_ http.ResponseWriter, r *http.Request) { end(r); panic(http.ErrAbortHandler) }, 0, 0, 1},
		{"the deadline has passed, and nothing was written", late(), func(_ http.ResponseWriter, r *http.Request) { end(r) }, 0, 1, 0},
		{"the deadline has passed, and 204", late(), func(w http.ResponseWriter, r *http.Request) { end(r); w.WriteHeader(http.StatusNoContent) }, 1, 0, 0},
		{"the deadline has passed after a flush", late(), func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); end(r) }, 1, 0, 0},
		{"the deadline has passed", late(), func(w http.ResponseWriter, r *http.Request) { end(r); w.WriteHeader(http.StatusGatewayTimeout) }, 0, 1, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := breaker.New("b", breaker.Config{})
			sendAndRecover(c.ctx, guard(b, weirhttp.GuardConfig{})(http.HandlerFunc(c.do)))
			totals := b.Totals()
			require.Equal(t, [3]int64{c.success, c.failed, c.ignored}, [3]int64{totals.Successes, totals.Failures, totals.Ignored})
		})
	}
}

func TestGuardOpensAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("search", breaker.Config{Recovery: breaker.Off, MinCalls: 3, Probes: 1, Cooldown: 7500 * time.Millisecond})
		status := 500
		var refusals []weirhttp.Refusal
		h := guard(b, weirhttp.GuardConfig{
			OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
		})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		for range 3 {
			require.Equal(t, 500, request{}.send(h).Code)
		}
		w := request{}.send(h)
		require.Equal(t, 503, w.Code)
		require.Equal(t, "8", w.Header().Get("Retry-After"), "Retry-After is rounded up")
		require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		require.Len(t, refusals, 1)
		require.ErrorIs(t, refusals[0].Err, breaker.ErrOpen)

		status = 200
		time.Sleep(8 * time.Second)
		require.Equal(t, 200, request{}.send(h).Code)
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestGuardAnswer(t *testing.T) {
	b := breaker.New("search", breaker.Config{Force: breaker.ForcedOpen})
	h := guard(b, weirhttp.GuardConfig{Answer: func(w http.ResponseWriter, _ *http.Request, f weirhttp.Refusal) {
		io.WriteString(w, "yesterday's page, for "+f.Err.Error())
	}})(respondWith(500))
	w := request{}.send(h)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "yesterday's page, for breaker \"search\"")
}

func TestEachRouteHasItsOwnGate(t *testing.T) {
	routes := func() *weir.Group[string] {
		return weir.NewGroup[string]("routes", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}})
	}
	mux := http.NewServeMux()
	mux.Handle("GET /good/{id}", respondWith(200))
	mux.Handle("GET /bad/{id}", respondWith(500))
	h := weirhttp.Guard(weirhttp.Per(routes(), weirhttp.ByRoute(mux)), weirhttp.GuardConfig{})(mux)
	for _, c := range []struct {
		path string
		want int
	}{{"/bad/1", 500}, {"/bad/2", 503}, {"/good/1", 200}, {"/nowhere", 404}} {
		require.Equal(t, c.want, request{path: c.path}.send(h).Code, c.path)
	}

	inner, g := http.NewServeMux(), routes()
	inner.Handle("GET /x/{id}", weirhttp.Guard(weirhttp.Per(g, weirhttp.ByRoute(nil)), weirhttp.GuardConfig{})(respondWith(500)))
	require.Equal(t, 500, request{path: "/x/1"}.send(inner).Code)
	require.Equal(t, 503, request{path: "/x/2"}.send(inner).Code)
	require.Equal(t, breaker.Open, g.Get("GET /x/{id}").Breaker().State())
}

func TestGuardWithALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("reports", weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: time.Second})
		var refusals []error
		h := weirhttp.Guard(weirhttp.ForAll(gate), weirhttp.GuardConfig{
			OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f.Err) },
		})(respondWith(200))
		start := time.Now()
		require.Equal(t, 200, request{}.send(h).Code)
		require.Equal(t, 200, request{}.send(h).Code)
		require.Equal(t, time.Second, time.Since(start), "the second request waits")
		first, second := sendIn(t.Context(), h), sendIn(t.Context(), h)
		require.ElementsMatch(t, []int{200, 503}, []int{<-first, <-second}, "one of them would wait for 2s")
		require.Len(t, refusals, 1)
		require.ErrorIs(t, refusals[0], limiter.ErrLimited)

		ctx, leave := context.WithCancel(t.Context())
		waiting := sendIn(ctx, h)
		synctest.Wait()
		leave()
		require.Equal(t, 503, <-waiting)
		require.Len(t, refusals, 1, "a request of a disconnected client was not refused")
	})
}

func TestGuardWithoutAGate(t *testing.T) {
	h := weirhttp.Guard(func(*http.Request) *weir.Gate { return nil }, weirhttp.GuardConfig{})(respondWith(500))
	for range 50 {
		require.Equal(t, 500, request{}.send(h).Code)
	}
	var given http.ResponseWriter
	h = weirhttp.Guard(func(*http.Request) *weir.Gate { return nil }, weirhttp.GuardConfig{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { given = w }))
	require.Same(t, request{}.send(h), given)
}

func TestGuardClassify(t *testing.T) {
	b := breaker.New("b", breaker.Config{ConsecutiveFailures: 1})
	h := guard(b, weirhttp.GuardConfig{Classify: func(r *http.Request, status int) breaker.Outcome {
		if r.URL.Path == "/strict" && status == 404 {
			return breaker.Failure
		}
		return breaker.Success
	}})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	require.Equal(t, 404, request{path: "/"}.send(h).Code)
	require.Equal(t, 404, request{path: "/strict"}.send(h).Code)
	require.Equal(t, 503, request{path: "/"}.send(h).Code)
}

func TestStreamBehindAGuardOccupiesNoProbeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Recovery: breaker.Off, Probes: 1, ProbeTimeout: time.Hour})
		b.OpenFor(time.Second)
		h := guard(b, weirhttp.GuardConfig{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		time.Sleep(time.Second)
		ctx, leave := context.WithCancel(t.Context())
		stream := sendIn(ctx, h)
		require.Equal(t, breaker.Closed, b.State(), "the stream has begun, so the probe has succeeded")
		leave()
		<-stream
	})
}

func TestGuardNeedsAGateFunction(t *testing.T) {
	require.PanicsWithError(t, "weirhttp: Guard needs a gate function", func() { weirhttp.Guard(nil, weirhttp.GuardConfig{}) })
}
