package weirhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/inflight"
)

// ShedConfig configures a [Shed]. The zero value is valid.
type ShedConfig struct {
	// MaxWait is the longest time that a request waits for a slot, up to 1h. Default 0, which
	// refuses requests at once.
	MaxWait time.Duration
	// RetryAfter is the Retry-After of refused requests, up to 24h. Default 1s.
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
	if c.MaxWait < 0 || c.MaxWait > time.Hour {
		faults = append(faults, fmt.Errorf("weirhttp: MaxWait is %v, must be between 0 and 1h", c.MaxWait))
	}
	if c.RetryAfter < 0 || c.RetryAfter > 24*time.Hour {
		faults = append(faults, fmt.Errorf("weirhttp: RetryAfter is %v, must be between 0 and 24h", c.RetryAfter))
	}
	return errors.Join(faults...)
}

// Shed returns middleware that limits how many requests are served at once. It refuses further
// requests with status 503 and Retry-After, before the server is so busy that all its responses are
// late:
//
//	inFlight := inflight.New(inflight.Config{Limit: 200, MaxWaiters: 100, Name: "api"})
//	shed := weirhttp.Shed(inFlight, weirhttp.ShedConfig{MaxWait: 50 * time.Millisecond})
//	server := &http.Server{Addr: ":8080", Handler: shed(mux), ReadHeaderTimeout: 5 * time.Second}
//
// A request occupies its slot until its handler returns or panics, even if the handler has taken
// over the connection. Put a Shed before a Limit, and both before a Guard, which counts a 503 as a
// failure. The limiter can be shared and can be changed at any time. If it has a name, it has
// metrics, and refusals name it. The handler gets the ResponseWriter of the server. Shed panics
// with the error of c.Validate if c is invalid, and if inFlight is nil.
func Shed(inFlight *inflight.Limiter, c ShedConfig) func(http.Handler) http.Handler {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if inFlight == nil {
		panic(errors.New("weirhttp: Shed needs a limiter"))
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = time.Second
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			slot, ok := acquire(r.Context(), inFlight, c.MaxWait)
			if !ok {
				refusal := Refusal{Status: http.StatusServiceUnavailable, RetryAfter: c.RetryAfter}
				if name := inFlight.Name(); name != "" {
					refusal.Policies = []string{name}
				}
				refusal.answer(w, r, c.OnRefusal, c.Answer)
				return
			}
			defer slot.Done(r.Context(), nil)
			next.ServeHTTP(w, r)
		})
	}
}

func acquire(ctx context.Context, inFlight *inflight.Limiter, maxWait time.Duration) (slot inflight.Slot, ok bool) {
	if maxWait == 0 {
		return inFlight.TryAcquire()
	}
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	slot, err := inFlight.Acquire(waiting)
	ok = err == nil
	return
}
