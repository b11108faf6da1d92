package weir

import (
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/limiter"
)

// Reconfigure replaces the config of all keys, including those added later, while calls are made.
// Any field can change. Calls that wait and calls in flight continue as [Gate.Reconfigure] says. In
// any span of time, a key is allowed at most the calls that the largest limits in effect during
// that span allow. Breakers keep their states and counts: see [breaker.Breaker.Reconfigure]. Token
// buckets keep their tokens, but not more than the new Burst: see [limiter.TokenBucket.SetRate].
//
// If c is invalid, Reconfigure returns the error of c.Validate and changes nothing.
func (g *Group[K]) Reconfigure(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	g.mu.Lock()
	err := g.setConfig(c)
	p := g.parts.Load()
	g.mu.Unlock()
	if err != nil {
		return err
	}
	// The breakers call OnChange, so the lock is not held. If another Reconfigure has come between,
	// the breakers get the config that the other parts have.
	for {
		if err = g.breakers.Reconfigure(p.config.Breaker); err != nil {
			return err
		}
		latest := g.parts.Load()
		if latest == p {
			return nil
		}
		p = latest
	}
}

// setMaxConcurrent replaces MaxConcurrent alone by a valid number, if there is a bound. The lock is
// held.
func (g *Group[K]) setMaxConcurrent(n int, number uint64) {
	p := *g.parts.Load()
	p.config.MaxConcurrent = n
	g.setParts(&p)
	g.slotsSet = number
}

// setConfig gives all gates the parts for a valid config. The lock is held.
func (g *Group[K]) setConfig(c Config) error {
	p := &groupParts[K]{config: c}
	if err := g.setBuckets(p); err != nil {
		return err
	}
	g.setParts(p)
	g.slotsSet = adminhook.NextNumber()
	return nil
}

// setParts gives all gates the buckets of p, and the other parts as the config of p says. It stores
// p before it visits the gates. So a gate that is made meanwhile either uses p from the beginning
// or is visited. The lock is held.
func (g *Group[K]) setParts(p *groupParts[K]) {
	g.setWithoutRoom(p)
	g.admissions.measureWaits(p.config.MaxWait)
	g.parts.Store(p)
	for _, gate := range g.All() {
		k := gate.keyed.(*keyedGate[K])
		next := new(setup)
		k.apply(p, next)
		k.setup.Store(next)
	}
	g.waits.adopt()
}

func (g *Group[K]) setBuckets(p *groupParts[K]) (err error) {
	if p.config.Rate == (limiter.Rate{}) {
		return nil
	}
	if c := g.bucketConfig(p.config); g.buckets == nil {
		g.buckets = limiter.NewGroup(c)
	} else {
		err = g.buckets.Reconfigure(c)
	}
	p.buckets = g.buckets
	return err
}

func (g *Group[K]) setWithoutRoom(p *groupParts[K]) {
	if p.config.bounded() {
		g.withoutRoom = boundWithLimits(g.withoutRoom, g.name, p.config)
		p.withoutRoom = g.withoutRoom
	}
}

// boundWithLimits returns a bound with the limits of c: l itself, whose slots stay in use, or a new
// bound if l is nil.
func boundWithLimits(l *inflight.Limiter, name string, c Config) *inflight.Limiter {
	if l == nil {
		return slotHooks.New(name, c.MaxConcurrent, c.Adaptive)
	}
	slotHooks.Reconfigure(l, c.MaxConcurrent, c.Adaptive)
	return l
}

// apply fills in a setup by the parts of the group. The lock of the group is held, unless the gate
// is new.
func (k *keyedGate[K]) apply(p *groupParts[K], s *setup) {
	s.Gate, s.longestWait = &k.Gate, p.config.MaxWait
	s.onlyBreaker = p.buckets == nil
	if p.buckets != nil {
		if k.bucket == (limiter.Keyed[K]{}) {
			k.bucket = p.buckets.Get(k.hold.key)
		}
		s.limiter, s.timed = &k.bucket, &k.bucket
	}
	switch {
	case p.withoutRoom == nil:
	case !k.hasRoom() || k.sharing.Load():
		s.setInFlight(p.withoutRoom)
		s.slots, s.shared = sharedListener{s.slots, k}, true
	default:
		own := boundWithLimits(k.inFlight.Load(), k.name, p.config)
		k.inFlight.Store(own)
		s.setInFlight(own)
	}
	if p.config.RefuseHopeless && k.hasRoom() { // a key without room has nothing to learn from
		s.setChances()
	}
}
