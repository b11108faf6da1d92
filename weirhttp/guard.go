package weirhttp

import (
	"errors"
	"net/http"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// GuardConfig configures a [Guard]. The zero value is valid.
type GuardConfig struct {
	// Classify returns the outcome of a request, given the status of its response. Default a failure from
	// 500 on, and otherwise a success.
	Classify func(r *http.Request, status int) breaker.Outcome
	// OnRefusal is called for each refusal, in the goroutine of the request: see LogRefusedRequests.
	// Default none.
	OnRefusal func(*http.Request, Refusal)
	// Answer answers a refused request, whose Retry-After is set before. Default Refusal.WriteProblem,
	// with status 503.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Guard returns middleware that sends requests to a handler through gates. While too many of its
// responses are failures, requests are refused with status 503, or answered by Answer:
//
//	search := weir.New("search", weir.Config{})
//	mux.Handle("GET /search", weirhttp.Guard(weirhttp.One(search), weirhttp.GuardConfig{})(searchHandler))
//
// With Per and ByRoute each route has a gate of its own. If a gate has a limiter and a MaxWait, the
// request waits for its turn.
//
// A response is judged when the handler returns, at its first Flush, or when the handler takes over the
// connection, so that streams and upgrades do not occupy a probe slot. A handler that panics has
// failed, also with [http.ErrAbortHandler], and the panic propagates. A request whose client went away
// before that is neither a success nor a failure.
//
// The ResponseWriter that the handler gets is an http.Flusher, Hijacker, Pusher and io.ReaderFrom if
// that of the server is, and [http.ResponseController] works. Guard panics if gate is nil.
func Guard(gate func(*http.Request) *weir.Gate, c GuardConfig) func(http.Handler) http.Handler {
	if gate == nil {
		panic(errors.New("weirhttp: Guard needs a gate function"))
	}
	if c.Classify == nil {
		c.Classify = func(_ *http.Request, status int) breaker.Outcome { return judgeStatus(status) }
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g := gate(r)
			if g == nil {
				next.ServeHTTP(w, r)
				return
			}
			s := served{ResponseWriter: w, request: r, classify: c.Classify}
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

// refuse answers a request that did not pass its gate. If that was because its context ended, nobody
// has refused it.
func (c GuardConfig) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal := Refusal{Status: http.StatusServiceUnavailable, RetryAfter: weir.RetryAfter(err), Err: err}
	hook := c.OnRefusal
	if !errors.Is(err, weir.ErrRefused) {
		hook = nil
	}
	refusal.answer(w, r, hook, c.Answer)
}

func judgeStatus(status int) breaker.Outcome {
	if status >= http.StatusInternalServerError {
		return breaker.Failure
	}
	return breaker.Success
}
