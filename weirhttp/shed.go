package weirhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// ShedConfig says what a [Shed] does with requests for which there is no room.
type ShedConfig struct {
	MaxWait    time.Duration // how long a request may wait for its turn, up to 1 h. Default: none waits.
	RetryAfter time.Duration // what those who are refused are told to wait, up to 24 h. Default: 1 s.

	// OnRefusal is told of each refusal, in the goroutine of the request: see LogRefusedRequests. Default: none.
	OnRefusal func(*http.Request, Refusal)
	// Answer answers a refused request; Retry-After is set. Default: Refusal.WriteProblem.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
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

// Shed is middleware that bounds how many requests are being served at once, whoever makes them, and refuses the others
// with status 503 and Retry-After: load that a server sheds before it is late with everything.
//
//	inFlight := limiter.NewConcurrency(limiter.ConcurrencyConfig{Limit: 200, MaxWaiters: 100})
//	shed := weirhttp.NewShed("api", inFlight, weirhttp.ShedConfig{MaxWait: 50 * time.Millisecond})
//	server := &http.Server{Addr: ":8080", Handler: shed.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
//
// A request counts until its handler returns or panics, also where that has taken over the connection. Put a Shed
// before a Limit, and both before a Breaker, for which a 503 is a failure. It is a [stat.Source]. All methods are safe
// for concurrent use; requests wait in Handler.
type Shed struct {
	flight *limiter.NamedConcurrency
	config ShedConfig
}

// NewShed makes middleware of a limiter, which may be shared and whose limit may be changed at any time. The name stands in problems and
// metrics. It panics with the error of c.Validate where there is one, and where flight is nil.
func NewShed(name string, flight *limiter.Concurrency, c ShedConfig) *Shed {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if flight == nil {
		panic(errors.New("weirhttp: NewShed needs a limiter.Concurrency"))
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = time.Second
	}
	return &Shed{flight: limiter.NewNamedConcurrency(name, flight, limiter.NamedConfig{}), config: c}
}

// Handler returns next behind the bound. It keeps the ResponseWriter as it is.
func (s *Shed) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, ok := s.enter(r.Context())
		if !ok {
			refusal := Refusal{
				Status: http.StatusServiceUnavailable, Policies: []string{s.flight.Name()}, RetryAfter: s.config.RetryAfter,
			}
			refusal.answer(w, r, s.config.OnRefusal, s.config.Answer)
			return
		}
		defer release()
		next.ServeHTTP(w, r)
	})
}

func (s *Shed) enter(ctx context.Context) (release func(), ok bool) {
	if s.config.MaxWait == 0 {
		return s.flight.TryAcquire()
	}
	waiting, cancel := context.WithTimeout(ctx, s.config.MaxWait)
	defer cancel()
	release, err := s.flight.Acquire(waiting)
	return release, err == nil
}

// Observe yields what became of requests, and how many more could be served now: see [limiter.NamedConcurrency].
func (s *Shed) Observe(yield func(*stat.Series, float64) bool) { s.flight.Observe(yield) }
