package weir

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// throttles are functions of throttles that only gates use.
var throttles = gatehook.Throttle.(gatehook.Throttles[throttle.Throttle, window.Outcome])

// Parts are the parts of a gate made by [Join]. Several gates may share a part.
type Parts struct {
	// Breaker refuses calls while the service fails. Required.
	Breaker *breaker.Breaker
	// Limiter limits the calls of all gates that share it. Default no limit.
	Limiter limiter.Limiter
	// Remote is a limit outside this process, such as a limit of a fleet. It is called last, after
	// Breaker and Limiter have allowed the call. If it returns an error, the call is not made, and
	// the error does not match ErrRefused. Default no limit.
	Remote limiter.Remote
	// Throttle refuses a share of the calls to an overloaded service. It is called after Breaker,
	// so it does not count calls that Breaker refuses, and before Limiter, so a call that it
	// refuses spends no token. The outcome recorded with the gate's permit is also recorded with
	// Throttle. A throttle has the same metrics as a breaker, so the two need different names.
	// Default none.
	Throttle *throttle.Throttle
	// InFlight bounds the calls in flight of all gates that share it: see Config.MaxConcurrent.
	// Default no bound.
	InFlight *inflight.Limiter
	// RefuseHopeless refuses calls whose deadlines are too near: see Config.RefuseHopeless. Each
	// gate has its own estimate. Default false.
	RefuseHopeless bool
	// MaxWait is the longest time that a call waits for Limiter, Remote and InFlight together: see
	// Config.MaxWait. It requires that Limiter and Remote, if set, are a limiter.WaitLimiter. If a
	// Remote refuses a call and the call then waits for it, the Remote counts both the refusal and
	// the wait. Default 0, which refuses calls at once.
	MaxWait time.Duration
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (p Parts) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if p.Breaker == nil {
		fault("Breaker is nil, must be a *breaker.Breaker")
	}
	if p.Breaker != nil && p.Throttle != nil && throttles.Name(p.Throttle) == p.Breaker.Name() {
		fault("Throttle and Breaker are both named %q, must have different names because their metrics have the same names", p.Breaker.Name())
	}
	if p.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", p.MaxWait)
	}
	if p.MaxWait <= 0 {
		return errors.Join(errs...)
	}
	if p.Limiter == nil && p.Remote == nil && p.InFlight == nil {
		fault("MaxWait is %v, must be 0 without a Limiter, a Remote and an InFlight", p.MaxWait)
	}
	if _, ok := p.Limiter.(limiter.WaitLimiter); p.Limiter != nil && !ok {
		fault("MaxWait is %v, must be 0 because Limiter is a %T, which is not a limiter.WaitLimiter", p.MaxWait, p.Limiter)
	}
	if _, ok := p.Remote.(limiter.WaitLimiter); p.Remote != nil && !ok {
		fault("MaxWait is %v, must be 0 because Remote is a %T, which is not a limiter.WaitLimiter", p.MaxWait, p.Remote)
	}
	return errors.Join(errs...)
}

// Join returns a gate of parts that you have made. The name appears in errors and metrics. Hold
// holds the gate and its Limiter: other gates with the same Limiter are affected, and other gates
// with the same Breaker or Remote are not. Join panics with the error of p.Validate if p is
// invalid.
func Join(name string, p Parts) *Gate {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	g := newGate(name, new(admissions))
	g.admissions.measureWaits(p.MaxWait)
	g.breaker = p.Breaker
	s := &g.first
	s.limiter, s.remote, s.throttle, s.longestWait = p.Limiter, p.Remote, p.Throttle, p.MaxWait
	s.timed, _ = p.Limiter.(limiter.TimedLimiter)
	s.onlyBreaker = p.Limiter == nil && p.Remote == nil && p.Throttle == nil
	if p.InFlight != nil {
		s.setInFlight(p.InFlight)
	}
	if p.RefuseHopeless {
		s.setChances()
	}
	return g
}

// throttleListener records the outcome of a call with the throttle.
type throttleListener struct{ *throttle.Throttle }

// Ended implements [gatehook.Listener].
func (l throttleListener) Ended(_ time.Duration, e ending) { throttles.Record(l.Throttle, e.Outcome) }
