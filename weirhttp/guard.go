package weirhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// GuardConfig configures a [Guard]. Every value is valid.
type GuardConfig struct {
	// Classify returns the outcome of a request by the status of its response. Default a failure
	// from 500 on, and a success below.
	Classify func(r *http.Request, status int) breaker.Outcome
	// OnRefusal is called for each refusal, before Answer: see [LogRefusedRequests]. Default none.
	OnRefusal func(*http.Request, Refusal)
	// Answer writes the response of a refused request. Retry-After is already set, unless the
	// request can never succeed. Default Refusal.WriteProblem, with status 503.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Guard returns middleware that sends requests to a handler through gates. While the handler fails,
// its gate refuses requests with status 503:
//
//	search := weir.New("search", weir.Config{})
//	mux.Handle("GET /search", weirhttp.Guard(weirhttp.ForAll(search), weirhttp.GuardConfig{})(searchHandler))
//
// With Per and ByRoute each route has its own gate. A request waits for a token for up to
// weir.Config.MaxWait. If the gate function returns nil, the request is served without a gate, as
// if there was no Guard.
//
// The outcome is known when the handler returns, flushes the response for the first time or takes
// over the connection, so streams and upgrades do not occupy a probe slot. If the handler panics
// before that, also with [http.ErrAbortHandler], the request is a failure and the panic propagates.
// If the client disconnects before that, the request is ignored.
//
// If the deadline of the request's context has passed and the handler has written nothing, or has
// written after an [http.TimeoutHandler] in front of the guard had answered, the status is 503.
//
// The ResponseWriter of the handler is an http.Flusher or http.Hijacker if the ResponseWriter of
// the server is one, and works with [http.ResponseController]. It is always an http.Pusher and an
// io.ReaderFrom. Guard panics if gate is nil.
//
// Put Guard around the router if the framework writes its errors after its middleware, as echo
// does, or past an adapter, as gin does. Inside, all requests would look like successes.
func Guard(gate func(*http.Request) *weir.Gate, c GuardConfig) func(http.Handler) http.Handler {
	if gate == nil {
		panic(errors.New("weirhttp: Guard needs a gate function"))
	}
	if c.Classify == nil {
		c.Classify = func(_ *http.Request, status int) breaker.Outcome { return classifyStatus(status) }
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g := gate(r)
			if g == nil {
				next.ServeHTTP(w, r)
				return
			}
			s := guardedResponse{watchedResponse: watchedResponse{ResponseWriter: w}, request: r, classify: c.Classify}
			s.answered = s.record
			var err error
			if s.permit, err = g.Allow(r.Context()); err != nil {
				c.refuse(w, r, err)
				return
			}
			defer s.end()
			next.ServeHTTP(s.writer(), r)
			s.returned = true
		})
	}
}

// refuse answers a request that its gate did not allow. OnRefusal is not called if the context of
// the request has ended or a remote limit came to no decision.
func (c GuardConfig) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal := Refusal{Status: http.StatusServiceUnavailable, RetryAfter: weir.RetryAfter(err), Err: err}
	onRefusal := c.OnRefusal
	if !errors.Is(err, weir.ErrRefused) {
		onRefusal = nil
	}
	refusal.answer(w, r, onRefusal, c.Answer)
}

func classifyStatus(status int) breaker.Outcome {
	if status >= http.StatusInternalServerError {
		return breaker.Failure
	}
	return breaker.Success
}

// guardedResponse is the ResponseWriter of a handler behind a Guard.
type guardedResponse struct {
	watchedResponse
	request  *http.Request
	classify func(*http.Request, int) breaker.Outcome
	permit   weir.Permit
	returned bool
	recorded bool
}

// end records the outcome after the handler has returned or panicked.
func (s *guardedResponse) end() {
	ctx := s.request.Context()
	silent := s.status == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case !s.returned && !cancelled(ctx):
		s.permit.Record(ctx, nil, breaker.Failure)
	case silent, s.late:
		s.status = http.StatusServiceUnavailable // the answer of http.TimeoutHandler
		s.record(s.status)
	default:
		s.record(http.StatusOK)
	}
}

// record records the outcome by the status that the handler has set, or by the given status if the
// handler has not set one.
func (s *guardedResponse) record(status int) {
	if s.recorded {
		return
	}
	s.recorded = true
	if s.status == 0 {
		s.status = status
	}
	o, ctx := breaker.Ignored, s.request.Context()
	if !cancelled(ctx) {
		o = s.classify(s.request, s.status)
	}
	s.permit.Record(ctx, statusError(s.status), o)
}
