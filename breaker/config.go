package breaker

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/window"
)

// Off turns a rule or a time off, in the fields of a Config that name it.
const Off = -1

// Config configures a [Breaker]. The zero value is a sensible breaker. A Config may be shared.
type Config struct {
	// FailureRate is the share of failed calls in the window at which the breaker opens, above 0
	// and at most 1, or Off for never. A rate is reached when it is equal. Default 0.5.
	FailureRate float64
	// SlowCall is the time above which a call is slow. It costs a second reading of the clock per
	// call. Default 0: no call is slow.
	SlowCall time.Duration
	// SlowRate is the share of slow calls in the window at which the breaker opens, above 0 and at
	// most 1, or Off for never. Default 0.5 if SlowCall is set.
	SlowRate float64
	// Latency keeps a histogram of how long calls take, if the window is over time. It costs a
	// second reading of the clock and two atomic adds per call, and 44 kB from the first call on.
	// Default false.
	Latency bool
	// HungCalls counts calls in flight for longer than SlowCall as slow before they return, so that
	// a service that hangs opens the breaker before its first call comes back. They are looked at
	// when a call asks to pass, at most once per bucket or once per 32nd of SlowCall and Window
	// together, whichever is longer. It costs two atomic adds per call, and memory for 40 counters.
	// Default false.
	HungCalls bool
	// Active counts the calls in flight, for the metric weir.breaker.call.active. A forgotten permit
	// counts forever. It costs a reading of the clock and two atomic adds per call. Default false.
	Active bool
	// ConsecutiveFailures is the number of failures in a row at which the breaker opens, however
	// far apart they are and whatever MinCalls is. Default 0: never.
	ConsecutiveFailures int
	// Trip opens the breaker if it returns true, with the reason that it returns. It is called at
	// each result while the breaker is closed, outside all locks, with the counts of the window. If
	// it panics the result counts and the panic propagates. Default none.
	Trip func(window.Counts) (reason string, trip bool)
	// SharedCounts returns counts from elsewhere, such as those of a fleet. At each result while the
	// breaker is closed they are compared with the same rates as its own counts, and either may open
	// it. They must leave out what came before the breaker closed. Negative counts are taken for 0.
	// Default none.
	SharedCounts func() window.Counts
	// MinCalls is the number of calls in the window below which no rate is compared, at least 1.
	// Default 20.
	MinCalls int

	// Window is the time span the rates are computed over, from 1ms to 30 days. Default 10s.
	Window time.Duration
	// Buckets is the number of parts of the window, which moves by one at a time, from 1 to 100,000,
	// none longer than an hour. Default 10.
	Buckets int
	// LastCalls is the number of calls the rates are computed over, from 1 to 100,000, in the place
	// of a time span: Window and Buckets must then be 0. If MinCalls is more, LastCalls calls are
	// enough. Default 0: the window is over time.
	LastCalls int

	// Cooldown is how long the breaker stays open before it lets probes through. With Off the next
	// call is a probe. Default 5s.
	Cooldown time.Duration
	// CooldownFactor is how many times longer each cooldown is than the one before, as long as the
	// probes fail, from 1 to 100. Default 1.
	CooldownFactor float64
	// MaxCooldown is the longest cooldown that CooldownFactor leads to, at least Cooldown. Default
	// 5m, or Cooldown if that is longer.
	MaxCooldown time.Duration
	// CooldownJitter is the largest share by which each cooldown is shortened at random, from 0 to
	// 1, so that a fleet does not probe at the same moment. Default 0.
	CooldownJitter float64
	// MaxRetryAfter is the longest wait that a failing service may ask for: by an error with a
	// method RetryAfter() time.Duration, or by Permit.SetRetryAfter. A breaker that opens then stays
	// open at least that long. With Off it does not listen. Default 1m.
	MaxRetryAfter time.Duration

	// Probes is the number of calls that a half-open breaker lets through, from 1 to 10,000. It
	// closes or opens by the same rates after MinCalls or Probes results, whichever is less. If
	// FailureRate is Off, the first failure opens it. Default 3.
	Probes int
	// ProbeTimeout is how long a probe occupies its slot. The slot of a probe without a result for
	// longer is given to the next call. Default 10s.
	ProbeTimeout time.Duration
	// HalfOpenTimeout is the time after the first probe at which a breaker that is still half-open
	// opens again. It does not run while nobody calls: after the cooldown the next call is a probe,
	// however late it comes. Default 0: never.
	HalfOpenTimeout time.Duration

	// Initial is the state of a new breaker: Closed, Open (for one cooldown), or an override.
	// Default Closed.
	Initial State

	// Classify returns the outcome of a call that returned the given error or nil. It runs outside
	// all locks. If it panics, the call is ignored and the panic propagates. Accept, Ignore and
	// FailOn return such functions. Default DefaultClassify.
	//
	// Classify is not asked about these calls:
	//
	//   - A call that panicked or called runtime.Goexit is a failure.
	//   - A call that returned an error after its caller cancelled ctx is ignored. A deadline that
	//     has passed is not a cancellation: a service that hangs until its callers' deadlines has
	//     failed. If the call returned no error, Classify is asked, but a failure is ignored.
	//   - A call whose error matches weir.ErrRefused is ignored: an inner breaker, throttle or
	//     limiter refused it, so the service never saw it. An error that joins a refusal and a
	//     failure matches too: if one call guards calls to several services, give each service its
	//     own breaker.
	//
	// When an errgroup cancels its context on the first error, the calls that end later are ignored.
	// To classify all of them, give each call a context that the errgroup does not cancel.
	Classify func(err error) Outcome

	// OnChange is called for every transition, one at a time and in their order, by the goroutine
	// that caused one and outside all locks: it may call any method of the breaker. While it runs
	// further transitions wait, up to 64; those beyond are dropped and counted. A panic in it is
	// recovered, logged and counted. Default none.
	OnChange func(Change)
}

const (
	maxProbes = 10_000
	maxFactor = 100
)

// Validate returns an error that names every field that is out of bounds, or nil.
func (c Config) Validate() error {
	var fs faults
	c.validateRules(&fs)
	c.validateWindow(&fs)
	c.validateRecovery(&fs)
	return errors.Join(fs...)
}

func (c Config) validateRules(fs *faults) {
	fs.share("FailureRate", c.FailureRate)
	fs.share("SlowRate", c.SlowRate)
	fs.atLeast("SlowCall", c.SlowCall, 0)
	if c.SlowCall == 0 && c.SlowRate > 0 {
		fs.add("SlowRate is %v, must be 0 where SlowCall is not set", c.SlowRate)
	}
	if c.SlowCall == 0 && c.HungCalls {
		fs.add("HungCalls is true, must be false where SlowCall is not set")
	}
	if c.ConsecutiveFailures < 0 {
		fs.add("ConsecutiveFailures is %d, must be at least 1, or 0 for never", c.ConsecutiveFailures)
	}
	if c.MinCalls < 0 {
		fs.add("MinCalls is %d, must be at least 1", c.MinCalls)
	}
}

// maxLastCalls is the longest window over calls.
const maxLastCalls = 100_000

func (c Config) validateWindow(fs *faults) {
	if c.LastCalls == 0 {
		if err := c.shape().Validate(); err != nil {
			fs.add("Window and Buckets: %w", err)
		}
		return
	}
	if c.LastCalls < 0 || c.LastCalls > maxLastCalls {
		fs.add("LastCalls is %d, must lie between 1 and %d, or be 0 for a window over time", c.LastCalls, maxLastCalls)
	}
	if c.Latency {
		fs.add("Latency is true, must be false where LastCalls is set")
	}
	if c.Window != 0 || c.Buckets != 0 {
		fs.add("Window is %v and Buckets is %d, must both be 0 where LastCalls is set", c.Window, c.Buckets)
	}
}

func (c Config) validateRecovery(fs *faults) {
	fs.atLeast("Cooldown", c.Cooldown, Off)
	if c.CooldownFactor != 0 && !(c.CooldownFactor >= 1 && c.CooldownFactor <= maxFactor) {
		fs.add("CooldownFactor is %v, must lie between 1 and %d", c.CooldownFactor, maxFactor)
	}
	fs.atLeast("MaxCooldown", c.MaxCooldown, 0)
	if cooldown := c.orDefault().Cooldown; c.MaxCooldown > 0 && c.MaxCooldown < cooldown {
		fs.add("MaxCooldown is %v, must be at least Cooldown, %v", c.MaxCooldown, cooldown)
	}
	if !(c.CooldownJitter >= 0 && c.CooldownJitter <= 1) {
		fs.add("CooldownJitter is %v, must lie between 0 and 1", c.CooldownJitter)
	}
	fs.atLeast("MaxRetryAfter", c.MaxRetryAfter, Off)
	if c.Probes < 0 || c.Probes > maxProbes {
		fs.add("Probes is %d, must lie between 1 and %d", c.Probes, maxProbes)
	}
	fs.atLeast("ProbeTimeout", c.ProbeTimeout, 0)
	fs.atLeast("HalfOpenTimeout", c.HalfOpenTimeout, 0)
	if c.Initial != "" && (!slices.Contains(states[:], c.Initial) || c.Initial == HalfOpen) {
		fs.add("Initial is %.60q, must be closed, open, forced_open, forced_closed, disabled or shadow", c.Initial)
	}
}

// faults are what is wrong with a config.
type faults []error

func (fs *faults) add(format string, args ...any) {
	*fs = append(*fs, fmt.Errorf("breaker: "+format, args...))
}

func (fs *faults) share(field string, v float64) {
	if v != Off && !(v >= 0 && v <= 1) {
		fs.add("%s is %v, must be above 0 and at most 1, or Off", field, v)
	}
}

// atLeast wants a duration of at least least: 0, or Off where that has a meaning.
func (fs *faults) atLeast(field string, d, least time.Duration) {
	switch {
	case d >= least:
	case least == Off:
		fs.add("%s is %v, must not be negative, or Off", field, d)
	default:
		fs.add("%s is %v, must not be negative", field, d)
	}
}

func (c Config) shape() window.Config { return window.Config{Span: c.Window, Buckets: c.Buckets} }

// orDefault returns the config with every zero field at its default and every Off
// at the value that turns it off.
func (c Config) orDefault() Config {
	c.FailureRate = either(c.FailureRate, 0.5, Off)
	c.SlowRate = either(c.SlowRate, 0.5, Off)
	if c.SlowCall == 0 {
		c.SlowRate, c.SlowCall = Off, math.MaxInt64
	}
	c.ConsecutiveFailures = either(c.ConsecutiveFailures, math.MaxInt, Off)
	c.MinCalls = either(c.MinCalls, 20, Off)
	if c.LastCalls == 0 {
		c.Window = either(c.Window, 10*time.Second, Off)
		c.Buckets = either(c.Buckets, 10, Off)
	}
	c.Cooldown = either(c.Cooldown, 5*time.Second, 0)
	c.CooldownFactor = either(c.CooldownFactor, 1, Off)
	c.MaxCooldown = either(c.MaxCooldown, max(5*time.Minute, c.Cooldown), Off)
	c.MaxRetryAfter = either(c.MaxRetryAfter, time.Minute, 0)
	c.Probes = either(c.Probes, 3, Off)
	c.ProbeTimeout = either(c.ProbeTimeout, 10*time.Second, Off)
	c.Initial = cmp.Or(c.Initial, Closed)
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
