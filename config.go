package weir

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// Config configures a [Gate]. The zero value has a breaker with its defaults and no limit. For a
// gate with another limiter, a remote limit or a throttle see [Join].
type Config struct {
	// Rate is the rate at which calls are allowed. Default no limit.
	Rate limiter.Rate
	// Burst is the number of calls that are allowed at once after an idle time, up to 2^40.
	// limiter.Off allows none. Default the calls of one second at Rate, at least 1.
	Burst int
	// MaxConcurrent is the highest number of calls in flight, up to 1,000,000 (a bulkhead). A call
	// takes its slot after its token. A call without a slot gives its token back, and is refused
	// with an *inflight.FullError. If it may wait for a slot, it takes a token again when it has
	// one, so calls never begin faster than Rate and Burst allow. Default 0, no bound, or 1,000,000
	// with Adaptive.
	MaxConcurrent int
	// Adaptive bounds the calls in flight at what the service can take, from 1 to MaxConcurrent.
	// It refuses calls only on evidence of an overload: most calls time out, take half of the time
	// that callers allow, or fail with the outcome breaker.Overloaded, and hardly any is fast. Then
	// it allows only as many at once as the service answers in good time: see package inflight. The
	// deadline of a call counts even if the breaker ignores it. Soon after the service has
	// recovered it refuses none again.
	//
	// Use it for a service that can be overloaded or lose capacity. A breaker notices an overload
	// late, and then refuses all calls. All calls are judged together, so give calls that are much
	// longer than the others a gate of their own. If one of ten queries slows down a service for
	// all (docs/protection.md, "One of ten queries is slow"), one gate for them refuses 72 % of
	// all. Give each of several hosts a gate of its own as well, by a Group. If one of ten hosts
	// fails, one gate for all of them lets its calls through, and 10 % of all calls fail. Adaptive
	// costs about 900 bytes, and two readings of the clock per call. If there are more than 5,000
	// calls per second, it reads the clock only for one call in several. Default false.
	Adaptive bool
	// MaxWait is the longest time that a call waits for a token, a slot and the end of a hold (see
	// Gate.Hold) together. Waiting calls are refused when the breaker opens. After the first wait a
	// gate keeps a histogram of the waiting times, of 2 KB. Default 0, which refuses calls at once.
	MaxWait time.Duration
	// RetryShare bounds the retries and hedges, which are the calls with WithAttempt. In any span
	// of time they are at most this share of the first calls in that span, and RetryBurst: see
	// RetryBudget. Further ones are refused with a *RetryError, so retries cannot overload a
	// service that is in trouble. From 0.001 to 1; 0.1 suits most services. In a Group each key has
	// a budget of its own, which begins anew when the key was evicted, and all keys without room
	// share one. Default 0, which bounds no retries.
	RetryShare float64
	// RetryBurst is how many retries and hedges are allowed besides, from 1 to 1,000,000. It
	// requires a RetryShare. Default 10.
	RetryBurst int
	// RefuseHopeless refuses a call with a *HopelessError if less than 5 % of the calls succeed
	// within the time until the deadline of its context. The share is estimated from the calls that
	// ended in the last 5 to 10 s. At least 60 of these calls must have succeeded or lasted as long
	// as the time until the deadline. The estimate is that of Kaplan and Meier: it allows for the
	// possibility that a call that was cut off by its deadline, failed or was ignored would have
	// succeeded later. Durations are rounded up by at most 9.1 %. A call without a deadline is
	// never refused.
	//
	// A refused call takes no token, no slot and no probe, and does not count as a failure. If a
	// call waits for its token or slot, its deadline is checked again afterwards. One hopeless call
	// per second is allowed as a test. If that call succeeds, the gate forgets the estimate and
	// learns a new one.
	//
	// RefuseHopeless does not need Breaker.Latency. It costs about four readings of the clock per
	// call, and 0.5 to 5 kB, depending on how much the durations of calls differ. Default false.
	RefuseHopeless bool
	// Breaker configures the breaker. Default the defaults of breaker.Config.
	Breaker breaker.Config
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("weir: "+format, args...)) }
	if c.bounded() && (inflight.Config{Limit: c.MaxConcurrent, Adaptive: c.Adaptive}).Validate() != nil {
		fault("MaxConcurrent is %d, must be between 1 and 1000000 (or 0 for no bound)", c.MaxConcurrent)
	}
	if c.MaxWait < 0 {
		fault("MaxWait is %v, must be at least 0", c.MaxWait)
	}
	if c.Rate == (limiter.Rate{}) {
		if c.Burst != 0 {
			fault("Burst is %d, must be 0 without a Rate", c.Burst)
		}
		if c.MaxWait > 0 && !c.bounded() {
			fault("MaxWait is %v, must be 0 without a Rate, a MaxConcurrent and Adaptive", c.MaxWait)
		}
	} else if err := c.bucket().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: %w", err))
	}
	if c.RetryShare != 0 {
		errs = append(errs, c.retries().validate("RetryShare", "RetryBurst"))
	} else if c.RetryBurst != 0 {
		fault("RetryBurst is %d, must be 0 without a RetryShare", c.RetryBurst)
	}
	if err := c.Breaker.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("weir: Breaker: %w", err))
	}
	return errors.Join(errs...)
}

// bounded reports whether calls take a slot.
func (c Config) bounded() bool { return c.MaxConcurrent != 0 || c.Adaptive }

func (c Config) retries() RetryBudgetConfig {
	return RetryBudgetConfig{Share: c.RetryShare, Burst: c.RetryBurst}
}

func (c Config) bucket() limiter.TokenBucketConfig {
	return limiter.TokenBucketConfig{Rate: c.Rate, Burst: c.Burst}
}

// ownParts are the parts of a gate of New. They are kept while there is no Rate or no bound. So
// when a Rate or a bound is added again, the tokens that were taken and the slots of calls in
// flight still count.
type ownParts struct {
	mu       sync.Mutex                       // held by Reconfigure
	bucket   *limiter.TokenBucket             // nil until there is a Rate
	inFlight atomic.Pointer[inflight.Limiter] // nil until there is a bound
	retries  *RetryBudget                     // nil until there is a RetryShare
}

// Reconfigure replaces the config while calls are made. Any field can change. A Rate,
// MaxConcurrent, Adaptive and RefuseHopeless can also be added and removed. No call is lost: a call
// that has begun ends as it would have, and a call that begins after Reconfigure has returned uses
// the new config alone. In any span of time, at most as many calls are allowed as the largest
// limits in effect during that span allow.
//
// The breaker keeps its state and its calls: see [breaker.Breaker.Reconfigure]. The token bucket
// keeps its tokens, but not more than the new Burst: see [limiter.TokenBucket.SetRate]. The first
// Rate begins with a full bucket, and a Rate that was removed and is added again continues with the
// bucket it had. Calls in flight beyond a lower MaxConcurrent continue. Calls that began while
// there was no bound do not count in one that is added. An adaptive bound keeps what it has learned
// until Adaptive is removed. RefuseHopeless begins a new estimate when it is added.
//
// Waiting calls keep their places in the queue if only numbers change. If a Rate or a bound is
// added or removed, they start to wait again, in no particular order, for what the new config
// requires. A call never waits longer than the smallest MaxWait that was in effect during its wait.
//
// If c is invalid, Reconfigure returns the error of c.Validate and changes nothing. It also returns
// an error and changes nothing for a gate of [Join], whose parts have to be changed instead, and
// for a gate of a Group: see [Group.Reconfigure].
func (g *Gate) Reconfigure(c Config) error {
	switch {
	case g.own != nil:
	case g.keyed != nil:
		return fmt.Errorf("weir: a gate of group %q cannot be changed alone, use Group.Reconfigure", g.name)
	default:
		return fmt.Errorf("weir: gate %q was made by Join, its Parts must be changed instead", g.name)
	}
	if err := c.Validate(); err != nil {
		return err
	}
	g.reconfigure(c)()
	return nil
}

// reconfigure changes the config. The caller calls deliver afterwards, without the lock, because
// deliver may call Reconfigure again.
func (g *Gate) reconfigure(c Config) (deliver func()) {
	g.own.mu.Lock()
	defer g.own.mu.Unlock()
	next := new(setup)
	g.apply(c, next)
	g.setup.Store(next)
	g.waits.adopt()
	return inBreaker.Reconfigure(g.breaker, c.Breaker)
}

// apply fills in a setup for a valid config, and changes the parts that the gate keeps.
func (g *Gate) apply(c Config, s *setup) {
	s.Gate = g
	s.maxWait = c.MaxWait
	s.onlyBreaker = c.Rate == limiter.Rate{}
	if !s.onlyBreaker {
		s.bucket = g.ownBucket(c)
		s.limiter, s.timed = s.bucket, s.bucket
	}
	if c.bounded() {
		s.setOwnInFlight(g.ownInFlight(c), c.Adaptive)
	}
	if c.RetryShare != 0 {
		g.own.retries = retriesWithLimits(g.own.retries, c, g.admissions())
		s.retries = g.own.retries
	}
	if c.RefuseHopeless {
		s.setChances()
	}
}

// retriesWithLimits returns the budget with the limits of c, or a new one if b is nil.
func retriesWithLimits(b *RetryBudget, c Config, a *admissions) *RetryBudget {
	if b == nil {
		return newRetryBudget(c.retries(), a.retryCounts())
	}
	b.setLimits(c.retries())
	return b
}

// ownBucket returns the bucket of the gate, with the limits of c.
func (g *Gate) ownBucket(c Config) *limiter.TokenBucket {
	if g.own.bucket == nil {
		g.own.bucket = inLimiter.NewTokenBucket(c.bucket(), g.epoch)
	} else {
		inLimiter.SetLimits(g.own.bucket, c.Rate, c.Burst)
	}
	return g.own.bucket
}

// ownInFlight returns the bound of the gate on calls in flight, as c wants it.
func (g *Gate) ownInFlight(c Config) *inflight.Limiter {
	l := boundWithLimits(g.own.inFlight.Load(), g.name, c)
	g.own.inFlight.Store(l)
	return l
}
