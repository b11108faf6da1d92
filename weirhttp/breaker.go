package weirhttp

import (
	"errors"
	"net/http"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// BreakerConfig says how handlers are judged, and what is done while they are not called.
type BreakerConfig struct {
	// Classify says what a response means, by its status. Default: from 500 on a failure, else a success.
	Classify func(r *http.Request, status int) breaker.Outcome
	// Route is the key of a request in Breakers. Default: http.Request.Pattern, which is known behind a ServeMux.
	// Before one, use RouteOf; for other routers see the package's documentation. The first request with an empty
	// Pattern is logged to slog.Default as an error.
	Route func(*http.Request) string

	// OnRefusal is told of each refusal, in the goroutine of the request: see LogRefusedRequests. Default: none.
	OnRefusal func(*http.Request, Refusal)
	// Answer answers a request that the breaker refuses; Retry-After is set. Default: Refusal.WriteProblem, with
	// status 503.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Breaker returns middleware that calls a handler through a breaker: when too many of its responses are failures, the
// fallback answers for a while in its place.
//
//	search := breaker.New("search", breaker.Config{})
//	mux.Handle("GET /search", weirhttp.Breaker(search, weirhttp.BreakerConfig{})(searchHandler))
//
// A response is judged when the handler returns, or at its first Flush or when it takes over the connection, so that
// streams and upgrades hold no probe. A handler that panics has failed, [http.ErrAbortHandler] included, and the panic
// goes on up untouched. Where the client has gone away before that, nothing can be said.
//
// The ResponseWriter that the handler gets is an http.Flusher, Hijacker, Pusher and io.ReaderFrom as far as that of the
// server is, and [http.ResponseController] works. Breaker panics if b is nil.
func Breaker(b *breaker.Breaker, c BreakerConfig) func(http.Handler) http.Handler {
	if b == nil {
		panic(errors.New("weirhttp: Breaker needs a breaker"))
	}
	return c.guard(func(*http.Request) *breaker.Breaker { return b })
}

// Breakers is [Breaker] with one of a group for each route. It panics if g is nil.
func Breakers(g *breaker.Group[string], c BreakerConfig) func(http.Handler) http.Handler {
	if g == nil {
		panic(errors.New("weirhttp: Breakers needs a group"))
	}
	route := c.Route
	if route == nil {
		route = patternOrLog("Breakers")
	}
	return c.guard(func(r *http.Request) *breaker.Breaker { return g.Get(route(r)) })
}

func (c BreakerConfig) guard(pick func(*http.Request) *breaker.Breaker) func(http.Handler) http.Handler {
	if c.Classify == nil {
		c.Classify = func(_ *http.Request, status int) breaker.Outcome { return judgeStatus(status) }
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := served{ResponseWriter: w, request: r, classify: c.Classify}
			var err error
			if s.permit, err = pick(r).Allow(); err != nil {
				c.refuse(w, r, err)
				return
			}
			defer s.end()
			next.ServeHTTP(s.writer(), r)
			s.returned = true
		})
	}
}

func (c BreakerConfig) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal := Refusal{
		Status: http.StatusServiceUnavailable, RetryAfter: weir.RetryAfter(err), Err: err,
		IP: Proxies{}.ClientIP(r), Route: r.Pattern,
	}
	refusal.answer(w, r, c.OnRefusal, c.Answer)
}

func judgeStatus(status int) breaker.Outcome {
	if status >= http.StatusInternalServerError {
		return breaker.Failure
	}
	return breaker.Success
}
