package weirhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/limiter"
)

// ShedConfig configures a [Shed]. The zero value is valid.
type ShedConfig struct {
	// MaxWait is how long a request may wait for its turn, up to 1 h. Default 0: no request waits.
	MaxWait time.Duration
	// RetryAfter is how long the clients of refused requests are told to wait, up to 24 h. Default 1 s.
	RetryAfter time.Duration

	// OnRefusal is called for each refusal, in the goroutine of the request: see LogRefusedRequests.
	// Default none.
	OnRefusal func(*http.Request, Refusal)
	// Answer answers a refused request, whose Retry-After is set before. Default Refusal.WriteProblem.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Validate returns an error that names every field that is out of bounds, or nil.
func (c ShedConfig) Validate() error {
	var faults []error
	if c.MaxWait < 0 || c.MaxWait > time.Hour {
		faults = append(faults, fmt.Errorf("weirhttp: MaxWait is %v, must lie between 0 and 1h", c.MaxWait))
	}
	if c.RetryAfter < 0 || c.RetryAfter > 24*time.Hour {
		faults = append(faults, fmt.Errorf("weirhttp: RetryAfter is %v, must lie between 0 and 24h", c.RetryAfter))
	}
	return errors.Join(faults...)
}

// Shed returns middleware that bounds how many requests are being served at once, whoever makes them,
// and refuses others with status 503 and Retry-After: load that a server sheds before all its answers
// are late.
//
//	inFlight := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 200, MaxWaiters: 100, Name: "api"})
//	shed := weirhttp.Shed(inFlight, weirhttp.ShedConfig{MaxWait: 50 * time.Millisecond})
//	server := &http.Server{Addr: ":8080", Handler: shed(mux), ReadHeaderTimeout: 5 * time.Second}
//
// A request counts until its handler returns or panics, also if the handler has taken over the
// connection. Put a Shed before a Limit, and both before a Guard, for which a 503 is a failure. The
// bound may be shared and changed at any time; with a name it keeps statistics, and the name stands in
// problems.
// The ResponseWriter is passed on as it is. Shed panics with the error of c.Validate if there is one,
// and if inFlight is nil.
func Shed(inFlight *limiter.Concurrency, c ShedConfig) func(http.Handler) http.Handler {
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
			release, ok := acquire(r.Context(), inFlight, c.MaxWait)
			if !ok {
				refusal := Refusal{Status: http.StatusServiceUnavailable, RetryAfter: c.RetryAfter}
				if name := inFlight.Name(); name != "" {
					refusal.Policies = []string{name}
				}
				refusal.answer(w, r, c.OnRefusal, c.Answer)
				return
			}
			defer release()
			next.ServeHTTP(w, r)
		})
	}
}

func acquire(ctx context.Context, inFlight *limiter.Concurrency, maxWait time.Duration) (release func(), ok bool) {
	if maxWait == 0 {
		return inFlight.TryAcquire()
	}
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	release, err := inFlight.Acquire(waiting)
	return release, err == nil
}
