package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/window"
)

// Off turns a rule off in a Config whose zero value means the default.
const Off = -1

// Config says when a breaker opens and how it closes again. The zero value is a
// sensible breaker; it holds no live object and may be shared.
type Config struct {
	// FailureRate is the share of calls in the window, above 0 and up to 1, at
	// which the breaker opens: reached is enough. Off never opens on it. Default 0.5.
	FailureRate float64
	// MinCalls is the number of calls in the window below which nothing is judged,
	// from 1 on. Off judges from the first call. Default 20.
	MinCalls int

	// Window is the span of time that is judged, from 1 ms to 30 days. Default 10 s.
	Window time.Duration
	// Buckets divide the window, which moves by one bucket at a time: from 1 to
	// 100,000, none longer than an hour. Default 10.
	Buckets int

	// Cooldown is how long the breaker stays open before it tries again. Off tries
	// again with the next call. Default 5 s.
	Cooldown time.Duration
	// Probes is how many calls a half-open breaker lets through, from 1 to 10,000.
	// It is judged, by the same rate, after MinCalls or Probes of them, whichever is
	// less. Default 3.
	Probes int
	// ProbeTimeout is how long a probe keeps its place. One that is unheard of for
	// longer gives it to the next call, without a verdict. Default 10 s.
	ProbeTimeout time.Duration

	// Classify says what an error, or nil, means. It is not asked about a call that
	// panicked, which is a failure, nor about one whose own context was cancelled,
	// which is ignored. It runs outside all locks. Default DefaultClassify.
	Classify func(err error) Outcome

	// OnChange is told of every state change, one at a time and in their order, by
	// the goroutine that caused one and outside all locks: it may call anything on
	// the breaker. While it runs further changes wait, 64 at most; what is beyond
	// that is dropped and counted. A panic in it is recovered, logged and counted.
	// Default none.
	OnChange func(Change)
}

const maxProbes = 10_000

// Validate returns an error that names every field that is out of bounds, and nil
// where there is none.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("breaker: "+format, args...)) }
	if c.FailureRate != Off && (c.FailureRate < 0 || c.FailureRate > 1 || c.FailureRate != c.FailureRate) {
		fault("FailureRate is %v, must be above 0 and at most 1, or Off", c.FailureRate)
	}
	if c.MinCalls < Off {
		fault("MinCalls is %d, must be at least 1, or Off", c.MinCalls)
	}
	if err := c.shape().Validate(); err != nil {
		fault("Window and Buckets: %w", err)
	}
	if c.Cooldown < Off {
		fault("Cooldown is %v, must not be negative, or Off", c.Cooldown)
	}
	if c.Probes < 0 || c.Probes > maxProbes {
		fault("Probes is %d, must lie between 1 and %d", c.Probes, maxProbes)
	}
	if c.ProbeTimeout < 0 {
		fault("ProbeTimeout is %v, must be above 0", c.ProbeTimeout)
	}
	return errors.Join(errs...)
}

func (c Config) shape() window.Config { return window.Config{Span: c.Window, Buckets: c.Buckets} }

// orDefault returns the config with every zero field at its default and every Off
// at the value that turns it off.
func (c Config) orDefault() Config {
	c.FailureRate = either(c.FailureRate, 0.5, Off)
	c.MinCalls = either(c.MinCalls, 20, 1)
	c.Window = either(c.Window, 10*time.Second, Off)
	c.Buckets = either(c.Buckets, 10, Off)
	c.Cooldown = either(c.Cooldown, 5*time.Second, 0)
	c.Probes = either(c.Probes, 3, Off)
	c.ProbeTimeout = either(c.ProbeTimeout, 10*time.Second, Off)
	if c.Classify == nil {
		c.Classify = DefaultClassify
	}
	return c
}

// either returns the value that a field stands for: zero for the default, Off for off.
func either[T int | float64 | time.Duration](v, zero, off T) T {
	switch v {
	case 0:
		return zero
	case Off:
		return off
	}
	return v
}
