package weirhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/friend"
)

// ShedConfig configures a [Shed]. The zero value is valid.
type ShedConfig struct {
	// Caller returns the priority and the tenant of a request, which decide about its place among
	// those that wait: see [inflight.Queue]. A request is a retry if its caller says so or if its
	// header X-Envoy-Attempt-Count has a number above 1. Default the caller of the request's
	// context: see [inflight.WithCaller].
	Caller func(*http.Request) inflight.Caller
	// RetryAfter is the least Retry-After of refused requests, up to 24h. It is longer if a slot is
	// expected later for the request: see [inflight.FullError.RetryAfter]. Retry-After has whole
	// seconds, rounded up. Default 1s.
	RetryAfter time.Duration

	// OnRefusal is called for each refusal, before Answer: see [LogRefusedRequests]. Default none.
	OnRefusal func(*http.Request, Refusal)
	// Answer writes the response of a refused request. Retry-After is already set. Default
	// Refusal.WriteProblem, with status 503.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c ShedConfig) Validate() error {
	var faults []error
	if c.RetryAfter < 0 || c.RetryAfter > 24*time.Hour {
		faults = append(faults, fmt.Errorf("weirhttp: RetryAfter is %v, must be between 0 and 24h", c.RetryAfter))
	}
	return errors.Join(faults...)
}

// Shed returns middleware that limits how many requests are served at once. It refuses further
// requests with status 503 and Retry-After, before the server is so busy that all its responses are
// late:
//
//	inFlight := inflight.New(inflight.Config{
//		Limit: 200, MaxWaiters: 1000, Queue: inflight.Queue{Target: 20 * time.Millisecond}, Name: "api",
//	})
//	shed := weirhttp.Shed(inFlight, weirhttp.ShedConfig{})
//	server := &http.Server{Addr: ":8080", Handler: shed(mux), ReadHeaderTimeout: 5 * time.Second}
//
// A request waits for a slot as long as the limiter's [inflight.Queue] says. If the Queue has no
// Target, requests do not wait.
//
// A request occupies its slot until its handler returns or panics, even if the handler has taken
// over the connection. A limit that adapts learns from the time until the handler calls
// WriteHeader, flushes the response or takes over the connection, or else returns: a stream may be
// long, and is not slow. It holds its slot until it ends, so give streams a Shed of their own if
// many are open: of 101 requests per second, 1 % that last a minute hold 60 slots
// (dev/proving/harm/streams-many.yaml). Put a Shed before a Limit, and both before a Guard, which
// counts a 503 as a failure. The limiter can be shared and can be changed at any time.
// [inflight.Limiter.Reconfigure] can also change whether requests wait. The ShedConfig cannot be
// changed. If the limiter has a name, it has metrics, and refusals name it. The handler gets the
// ResponseWriter of the server, or one like that of a [Guard] if the limit adapts. Shed panics with
// the error of c.Validate if c is invalid, and if inFlight is nil.
func Shed(inFlight *inflight.Limiter, c ShedConfig) func(http.Handler) http.Handler {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if inFlight == nil {
		panic(errors.New("weirhttp: Shed needs a limiter"))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			slot, err := c.acquire(r, inFlight)
			if err != nil {
				c.refusal(inFlight, err).answer(w, r, c.OnRefusal, c.Answer)
				return
			}
			defer func() { slot.Done(r.Context(), r.Context().Err()) }()
			if adapts(inFlight) {
				answered := func() { slot.Answered(r.Context()) }
				watched := watchedResponse{ResponseWriter: w, header: answered, answered: func(int) { answered() }}
				w = watched.writer()
			}
			next.ServeHTTP(w, r)
		})
	}
}

// adapts reports whether a limit adapts.
func adapts(l *inflight.Limiter) bool { return inflight.Inside(friend.Key{}).Adapts(l) }

func (c *ShedConfig) acquire(r *http.Request, inFlight *inflight.Limiter) (inflight.Slot, error) {
	if inFlight.Queue().Target == 0 {
		return inFlight.TryAcquire(r.Context())
	}
	caller := inflight.CallerOf(r.Context())
	if c.Caller != nil {
		caller = c.Caller(r)
	}
	if attempt := r.Header.Get(attemptHeader); attempt != "" && !caller.Retry {
		n, err := strconv.Atoi(attempt)
		caller.Retry = err == nil && n > 1
	}
	ctx := r.Context()
	if c.Caller != nil || caller.Retry {
		ctx = inflight.WithCaller(ctx, caller)
	}
	return inFlight.Acquire(ctx)
}

// refusal returns the refusal of a request that got no slot.
func (c *ShedConfig) refusal(inFlight *inflight.Limiter, err error) Refusal {
	f := Refusal{Status: http.StatusServiceUnavailable, Err: err, RetryAfter: c.RetryAfter}
	if name := inFlight.Name(); name != "" {
		f.Policies = []string{name}
	}
	if full, ok := errors.AsType[*inflight.FullError](err); ok {
		f.RetryAfter = max(f.RetryAfter, full.RetryAfter())
	}
	return f
}
