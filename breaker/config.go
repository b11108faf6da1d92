package breaker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weir-go/weir/stat/view"
	"github.com/weir-go/weir/window"
)

// Off disables a limit or a time, in the fields of Config and GroupConfig that allow it.
const Off = -1

// Config configures a [Breaker]. The zero value is ready to use. Several breakers may share a
// Config.
type Config struct {
	// FailureRate is the share of failed calls in the window at which the breaker opens, above 0
	// and at most 1, or Off for never. Default 0.5.
	FailureRate float64
	// SlowCall is the duration above which a call is slow. A call is counted when it ends: give
	// calls that may hang a deadline, and bound those in flight with weir.Config.MaxConcurrent.
	// SlowCall costs a second reading of the clock per call. Default 0: no call is slow.
	SlowCall time.Duration
	// SlowRate is the share of slow calls in the window at which the breaker opens, above 0 and at
	// most 1, or Off for never. Default 0.5 if SlowCall is set.
	SlowRate float64
	// Latency keeps a histogram of the durations of calls, if the window is a time span. It costs a
	// second reading of the clock and two atomic adds per call, and up to 36 kB: 5 kB from the
	// first call on, and 2 kB per twelfth of the window with calls. Default false.
	Latency bool
	// ConsecutiveFailures is the number of consecutive failures at which the breaker opens, however
	// far apart they are and whatever MinCalls is. Default 0: never.
	ConsecutiveFailures int
	// FailureRun is the number of failures in a run at which the breaker opens, plus one failure
	// for every six calls in the window. It applies however far apart they are and whatever
	// MinCalls is. Off means never. A success does not end a run, but undoes FailureRate / (1 −
	// FailureRate) failures, which is one by default. A run does not count slow calls. With Off,
	// rates are judged as calls end, whichever calls began before: see docs/breaker.md.
	// Default 10 if FailureRate and MinCalls have their defaults, and otherwise FailureRate ×
	// MinCalls, rounded up, or more if that is too short: when calls fail by chance at 40 % of
	// FailureRate, they open the breaker less than once in a million calls. The default is Off if
	// LastCalls is set or FailureRate is Off.
	FailureRun int
	// Trip opens the breaker if it returns true, with the reason that it returns. It is called with
	// the counts of the window at each result while the breaker is closed, outside all locks. If it
	// panics, the result counts and the panic propagates. Default none.
	Trip func(window.Counts) (reason string, trip bool)
	// SharedCounts returns counts from elsewhere, such as those of a fleet. At each result while
	// the breaker is closed, they are compared with the same rates as the breaker's own counts.
	// Both kinds of counts can open it. Shared counts must not include calls before the breaker
	// closed. A negative count is taken as 0. Default none.
	SharedCounts func() window.Counts
	// MinCalls is the number of calls in the window below which no rate is compared, at least 1.
	// Default 20.
	MinCalls int

	// Window is the time span the rates are computed over, from 1ms to 30 days. Default 10s.
	Window time.Duration
	// Buckets is the number of parts of the window, which moves by one part at a time, from 1 to
	// 100,000. No part may be longer than an hour. Default 10.
	Buckets int
	// LastCalls is the number of calls the rates are computed over, from 1 to 100,000, instead of a
	// time span. Window and Buckets must be 0 then. If MinCalls is greater, LastCalls calls are
	// enough. Default 0: the window is a time span.
	LastCalls int

	// Cooldown is the time that the breaker stays open before it lets probes through, or Off for
	// none. Default 1s.
	Cooldown time.Duration
	// CooldownFactor is how many times longer each cooldown is than the one before, as long as
	// probes fail, from 1 to 100. Default 1.
	CooldownFactor float64
	// MaxCooldown is the longest cooldown that CooldownFactor leads to, at least Cooldown. Default
	// 5m, or Cooldown if that is longer.
	MaxCooldown time.Duration
	// CooldownJitter is the largest share by which each cooldown is shortened at random, from 0 to
	// 1, so that the breakers of a fleet do not probe at the same time. A wait that a service asks
	// for is lengthened by up to the same share: see MaxRetryAfter and weir.Gate.Hold. Off disables
	// both. Default 0 for cooldowns, and 0.1 for waits that a service asks for.
	CooldownJitter float64
	// MaxRetryAfter is the longest wait that a failing service may ask for, or Off to ignore such
	// waits. A service asks by an error with a method RetryAfter() time.Duration, or by
	// Permit.SetRetryAfter. A breaker that opens then stays open for at least the wait, and longer
	// by up to CooldownJitter of the wait: a service asks all its clients at once, and they should
	// not all come back at once. Default 1m.
	MaxRetryAfter time.Duration

	// Probes is the number of calls that a half-open breaker lets through, from 1 to 10,000. After
	// MinCalls or Probes results, whichever is less, the same rates close or open it, as soon as
	// the probes in flight cannot change the verdict. If FailureRate is Off, the first failure
	// opens it. If a run of failures has opened the breaker, failures before the first success open
	// it again. Default 3.
	Probes int
	// ProbeTimeout is the time after which the slot of a probe without a result is given to another
	// call, and after which a recovering breaker no longer waits for the results of a round.
	// Default 10s.
	ProbeTimeout time.Duration
	// HalfOpenTimeout is the time after the first probe at which a half-open breaker opens again.
	// The time does not begin without a call: the next call after the cooldown is a probe, however
	// late it comes. Default 0: never.
	HalfOpenTimeout time.Duration

	// Recovery is how long no round of calls may fail after the probes have succeeded until the
	// breaker closes, or Off to close it at once. Until then it is recovering: it lets a share of
	// the calls through, which grows while they go well and shrinks while they fail. The breaker
	// opens again if calls only fail for that time. Default 20s.
	Recovery time.Duration

	// Force is an override: ForcedOpen, ForcedClosed, Disabled or Shadow. Reconfigure lifts it. In
	// a group it holds for all keys, those that come later included. Keys without room are forced
	// open or closed. An override that Breaker.Force sets lies over it. Default none.
	Force State
	// ForceReason is why Force is set, such as "maintenance until 18:00", of at most 1,024 bytes.
	// It is for refused callers and Change.Reason. Default "forced" if Force is set.
	ForceReason string

	// Classify returns the outcome of a call that returned the given error or nil. It runs outside
	// all locks. If it panics, the call is ignored and the panic propagates. Accept, Ignore and
	// FailOn return such functions. Default DefaultClassify.
	//
	// Classify is not asked about these calls:
	//
	//   - A call that panicked or called runtime.Goexit is a failure.
	//   - A call that returned an error after its caller cancelled ctx is ignored. A deadline that
	//     has passed is not a cancellation, because a service that hangs until the deadlines of its
	//     callers has failed. docs/breaker.md says which deadlines say nothing about the
	//     service. If the call returned no error, Classify is called, but a failure is ignored.
	//   - A call whose error matches weir.ErrRefused is ignored: an inner breaker, throttle or
	//     limiter refused it, so the service never saw it. An error that joins a refusal and a
	//     failure matches too: if one call guards calls to several services, give each service its
	//     own breaker.
	//
	// When an errgroup cancels its context on the first error, the calls that end later are
	// ignored. To classify all of them, give each call a context that the errgroup does not cancel.
	Classify func(err error) Outcome

	// KeepFailures is how many failures the breaker keeps, from 1 to 100, to show the last ones
	// when it opens, or Off for none. Once there are that many, a new failure replaces the oldest,
	// but at most once per millisecond. See docs/breaker.md for what is kept of each. Default
	// 8.
	KeepFailures int
	// DescribeFailure may change what is kept of a failed call, such as add the trace ID of ctx as
	// Note, or clear a Message that has secrets. f has Kind and Message, but not Time and Duration.
	// err is nil if the call did not return, or Permit.Record or the value that it returned says
	// that it failed. DescribeFailure runs outside all locks. A panic is recovered: then f is kept
	// without Message and Note. Default none.
	DescribeFailure func(ctx context.Context, err error, f *FailedCall)

	// Trace returns the IDs of the trace and the span of a call, in hexadecimal digits, or "" if
	// the call has no trace that is sampled: see otelweir.Trace. With Latency, some calls, at most
	// one per second for each bucket, become exemplars of their durations. A call without a ctx, or
	// with an ID of more than 64 bytes, does not become an exemplar. Trace runs outside all locks.
	// A panic is recovered. Default none.
	Trace func(ctx context.Context) (traceID, spanID string)

	// OnChange is called for every transition, one at a time and in order. The goroutine that
	// causes the transition calls it, outside all locks, so it may call any method of the breaker.
	// While it runs, up to 64 further transitions wait; more are dropped and counted. A panic in
	// OnChange is recovered, logged and counted. Default none.
	OnChange func(Change)
}

const (
	maxLastCalls = 100_000
	maxProbes    = 10_000
	maxRun       = 100_000
	maxFactor    = 100
	maxKept      = 100
	maxReason    = 1024
)

// Validate returns an error that names every invalid field, or nil.
func (c Config) Validate() error {
	var fs faults
	c.validateRules(&fs)
	c.validateWindow(&fs)
	c.validateRecovery(&fs)
	if c.KeepFailures < Off || c.KeepFailures > maxKept {
		fs.add("KeepFailures is %d, must lie between 1 and %d, or Off", c.KeepFailures, maxKept)
	}
	return errors.Join(fs...)
}

func (c Config) validateRules(fs *faults) {
	fs.checkShare("FailureRate", c.FailureRate)
	fs.checkShare("SlowRate", c.SlowRate)
	fs.atLeast("SlowCall", c.SlowCall, 0)
	if c.SlowCall == 0 && c.SlowRate > 0 {
		fs.add("SlowRate is %v, must be 0 if SlowCall is not set", c.SlowRate)
	}
	if c.ConsecutiveFailures < 0 {
		fs.add("ConsecutiveFailures is %d, must be at least 1, or 0 for never", c.ConsecutiveFailures)
	}
	switch {
	case c.FailureRun < Off || c.FailureRun > maxRun:
		fs.add("FailureRun is %d, must lie between 1 and %d, or Off", c.FailureRun, maxRun)
	case c.FailureRun > 0 && c.FailureRate == Off:
		fs.add("FailureRun is %d, must be 0 or Off if FailureRate is Off", c.FailureRun)
	}
	if c.MinCalls < 0 {
		fs.add("MinCalls is %d, must be at least 1", c.MinCalls)
	}
}

func (c Config) validateWindow(fs *faults) {
	if c.LastCalls == 0 {
		if err := c.windowConfig().Validate(); err != nil {
			fs.add("Window and Buckets: %w", err)
		}
		return
	}
	if c.LastCalls < 0 || c.LastCalls > maxLastCalls {
		fs.add("LastCalls is %d, must lie between 1 and %d, or 0 for a time span", c.LastCalls, maxLastCalls)
	}
	if c.Latency {
		fs.add("Latency is true, must be false if LastCalls is set")
	}
	if c.Window != 0 || c.Buckets != 0 {
		fs.add("Window is %v and Buckets is %d, must both be 0 if LastCalls is set", c.Window, c.Buckets)
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
	if c.CooldownJitter != Off && !(c.CooldownJitter >= 0 && c.CooldownJitter <= 1) {
		fs.add("CooldownJitter is %v, must lie between 0 and 1, or Off", c.CooldownJitter)
	}
	fs.atLeast("MaxRetryAfter", c.MaxRetryAfter, Off)
	if c.Probes < 0 || c.Probes > maxProbes {
		fs.add("Probes is %d, must lie between 1 and %d", c.Probes, maxProbes)
	}
	fs.atLeast("Recovery", c.Recovery, Off)
	fs.atLeast("ProbeTimeout", c.ProbeTimeout, 0)
	fs.atLeast("HalfOpenTimeout", c.HalfOpenTimeout, 0)
	if c.Force != "" && !c.Force.isOverride() {
		fs.add("Force is %.60q, must be forced_open, forced_closed, disabled or shadow", c.Force)
	}
	if len(c.ForceReason) > maxReason {
		fs.add("ForceReason has %d bytes, must have at most %d", len(c.ForceReason), maxReason)
	}
	if c.ForceReason != "" && c.Force == "" {
		fs.add("ForceReason is %.60q, must be empty if Force is", c.ForceReason)
	}
}

func (c Config) windowConfig() window.Config {
	return window.Config{Span: c.Window, Buckets: c.Buckets}
}

// orDefault returns c with defaults for zero fields. Each Off becomes the value that has no effect.
func (c Config) orDefault() Config {
	c.FailureRate = valueOr(c.FailureRate, 0.5, Off)
	c.SlowRate = valueOr(c.SlowRate, 0.5, Off)
	if c.SlowCall == 0 {
		c.SlowRate, c.SlowCall = Off, math.MaxInt64
	}
	c.ConsecutiveFailures = valueOr(c.ConsecutiveFailures, math.MaxInt, Off)
	c.MinCalls = valueOr(c.MinCalls, 20, Off)
	if c.LastCalls == 0 {
		c.Window = valueOr(c.Window, 10*time.Second, Off)
		c.Buckets = valueOr(c.Buckets, 10, Off)
	}
	c.FailureRun = valueOr(c.FailureRun, c.defaultRun(), math.MaxInt)
	c.Cooldown = valueOr(c.Cooldown, time.Second, 0)
	c.CooldownFactor = valueOr(c.CooldownFactor, 1, Off)
	c.MaxCooldown = valueOr(c.MaxCooldown, max(5*time.Minute, c.Cooldown), Off)
	c.MaxRetryAfter = valueOr(c.MaxRetryAfter, time.Minute, 0)
	c.Recovery = valueOr(c.Recovery, 20*time.Second, 0)
	c.Probes = valueOr(c.Probes, 3, Off)
	c.ProbeTimeout = valueOr(c.ProbeTimeout, 10*time.Second, Off)
	c.KeepFailures = valueOr(c.KeepFailures, 8, 0)
	return c
}

// valueOr returns zero if v is 0, off if v is Off, and otherwise v.
func valueOr[T int | float64 | time.Duration](v, zero, off T) T {
	switch v {
	case 0:
		return zero
	case Off:
		return off
	}
	return v
}

// faults are the errors of a Config.
type faults []error

func (fs *faults) add(format string, args ...any) {
	*fs = append(*fs, fmt.Errorf("breaker: "+format, args...))
}

func (fs *faults) checkShare(field string, v float64) {
	if v != Off && !(v >= 0 && v <= 1) {
		fs.add("%s is %v, must be above 0 and at most 1, or Off", field, v)
	}
}

// atLeast adds an error if d is below least. least is 0, or Off for fields that can be off.
func (fs *faults) atLeast(field string, d, least time.Duration) {
	switch {
	case d >= least:
	case least == Off:
		fs.add("%s is %v, must not be negative, or Off", field, d)
	default:
		fs.add("%s is %v, must not be negative", field, d)
	}
}

// Settings returns the Config with its defaults, in words, except for its functions.
func (r *rules) Settings() []view.Setting {
	c := &r.config
	all := []view.Setting{
		{Name: "FailureRate", Value: rateText(c.FailureRate)},
		{Name: "FailureRun", Value: countText(c.FailureRun)},
		{Name: "ConsecutiveFailures", Value: countText(c.ConsecutiveFailures)},
		{Name: "SlowCall", Value: spanText(c.SlowCall)},
		{Name: "SlowRate", Value: rateText(c.SlowRate)},
		{Name: "MinCalls", Value: countText(c.MinCalls)},
	}
	if c.LastCalls > 0 {
		all = append(all, view.Setting{Name: "LastCalls", Value: countText(c.LastCalls)})
	} else {
		all = append(all, view.Setting{Name: "Window", Value: fmt.Sprintf("%v in %d buckets", c.Window, c.Buckets)})
	}
	return append(all,
		view.Setting{Name: "Cooldown", Value: spanText(c.Cooldown)},
		view.Setting{Name: "CooldownFactor", Value: strconv.FormatFloat(c.CooldownFactor, 'g', 4, 64)},
		view.Setting{Name: "MaxCooldown", Value: spanText(c.MaxCooldown)},
		view.Setting{Name: "CooldownJitter", Value: rateText(c.CooldownJitter)},
		view.Setting{Name: "MaxRetryAfter", Value: spanText(c.MaxRetryAfter)},
		view.Setting{Name: "Probes", Value: countText(c.Probes)},
		view.Setting{Name: "ProbeTimeout", Value: spanText(c.ProbeTimeout)},
		view.Setting{Name: "HalfOpenTimeout", Value: spanText(c.HalfOpenTimeout)},
		view.Setting{Name: "Recovery", Value: spanText(c.Recovery)},
		view.Setting{Name: "KeepFailures", Value: countText(c.KeepFailures)},
	)
}

const offText = "off"

func rateText(share float64) string {
	if share <= 0 {
		return offText
	}
	return fmt.Sprintf("%.4g %%", 100*share)
}

func countText(n int) string {
	if n <= 0 || n == math.MaxInt {
		return offText
	}
	return strconv.Itoa(n)
}

func spanText(d time.Duration) string {
	if d <= 0 || d == math.MaxInt64 {
		return offText
	}
	return d.String()
}
