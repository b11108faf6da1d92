package weir

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/limiter"
)

// setLimits changes the rate and the burst of a bucket together. Both are valid.
var setLimits = bridge.SetLimits.(func(*limiter.TokenBucket, limiter.Rate, int))

// ownParts are the parts of a gate of New. They are kept while there is no Rate or no bound. So
// when a Rate or a bound is added again, the tokens that were taken and the slots of calls in
// flight still count.
type ownParts struct {
	mu       sync.Mutex                       // held by Reconfigure
	bucket   *limiter.TokenBucket             // nil until there is a Rate
	inFlight atomic.Pointer[inflight.Limiter] // nil until there is a bound
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
	case g.admissions.shared:
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
	return hooks.Reconfigure(g.breaker, c.Breaker)
}

// apply fills in a setup for a valid config, and changes the parts that the gate keeps.
func (g *Gate) apply(c Config, s *setup) {
	s.Gate = g
	s.longestWait = c.MaxWait
	g.admissions.measureWaits(c.MaxWait)
	s.onlyBreaker = c.Rate == limiter.Rate{}
	if !s.onlyBreaker {
		s.bucket = g.ownBucket(c)
		s.limiter, s.timed = s.bucket, s.bucket
	}
	if c.bounded() {
		s.setOwnInFlight(g.ownInFlight(c), c.Adaptive)
	}
	if c.RefuseHopeless {
		s.setChances()
	}
}

// ownBucket returns the bucket of the gate, with the limits of c.
func (g *Gate) ownBucket(c Config) *limiter.TokenBucket {
	if g.own.bucket == nil {
		g.own.bucket = limiter.NewTokenBucketAt(c.bucket(), g.epoch)
	} else {
		setLimits(g.own.bucket, c.Rate, c.Burst)
	}
	return g.own.bucket
}

// ownInFlight returns the bound of the gate on calls in flight, as c wants it.
func (g *Gate) ownInFlight(c Config) *inflight.Limiter {
	l := boundWithLimits(g.own.inFlight.Load(), g.name, c)
	g.own.inFlight.Store(l)
	return l
}
