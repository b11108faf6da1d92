package inflight

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Reconfigure replaces the Config while calls are made. Any field except Name can change. At no
// time do more calls get a slot than the larger of the two limits allows. Calls in flight beyond a
// lower limit continue.
//
// Callers that wait keep their places, even if there are more of them than the new MaxWaiters.
// After a change of Queue they wait for at most the new Interval, but never longer than the old
// Queue would have let them wait. A change of Target or Interval begins a new Interval. If Shadow
// is switched on, waiting callers are allowed at once.
//
// A limit that adapts keeps what it has learned until Adaptive is removed. A fixed limit that
// becomes adaptive begins with the number of calls in flight, but with at least 50 and at most
// Limit. Its calls in flight are not timed.
//
// If c is invalid, Reconfigure returns the error of c.Validate and changes nothing. If c has
// another Name, it returns an error and changes nothing.
func (l *Limiter) Reconfigure(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Name != l.name {
		return fmt.Errorf("inflight: Name is %q, must be %q as before", c.Name, l.name)
	}
	l.reconfigure(c)
	return nil
}

// reconfigure changes everything but the name. c is valid.
func (l *Limiter) reconfigure(c Config) {
	weights := l.queue.weights(c.Queue)
	_ = l.set.Change(func() error {
		l.queue.reconfigure(c, time.Since(l.epoch), weights)
		if l.statistics != nil {
			l.statistics.shadow.Store(c.Shadow)
		}
		l.setLimit(c)
		return nil
	})
}

// replaceLimit replaces Config.Limit, which is the upper bound of a limit that adapts, while l.set
// is locked. If Config.Validate refuses n, it returns the error and changes nothing.
func (l *Limiter) replaceLimit(n int) error {
	c := Config{Limit: n, Adaptive: l.adaptive.Load() != nil, Queue: l.Queue()}
	if err := c.Validate(); err != nil {
		return err
	}
	l.setLimit(c)
	return nil
}

// setLimit changes the limit and its kind, and serves the waiters for which there is a slot then.
func (l *Limiter) setLimit(c Config) {
	switch a := l.adaptive.Load(); {
	case a != nil && c.Adaptive:
		a.setUpper(cmp.Or(c.Limit, maxLimit), c.Queue.Target)
	case c.Adaptive:
		l.adaptive.Store(newAdaptive(l.epoch, c, &l.limit, l.InFlight()))
	default:
		l.adaptive.Store(nil)
		if a != nil {
			a.freeze()
		}
		l.limit.Store(uint32(c.Limit))
	}
	for l.state.hasWaiters() {
		l.serveWaiters()
		if a := l.adaptive.Load(); a == nil || !a.tryRaise(l.InFlight()) {
			break
		}
	}
}

func (q *queue) set(c Config) {
	own := c.Queue // a copy, so that the pointer does not keep all of c
	q.config.Store(&own)
	q.maxWaiters.Store(int64(c.MaxWaiters))
}

// weights returns the weights that a config gives to the tenants that wait. It calls a function of
// the user, so it must not be called with a lock.
func (q *queue) weights(c Queue) map[string]float64 {
	weights := map[string]float64{}
	q.mu.Lock()
	if q.backlog != nil {
		for t := range q.backlog.tenants {
			weights[t.oldest().caller.Tenant] = 0
		}
	}
	q.mu.Unlock()
	for name := range weights {
		weights[name] = c.tenantWeight(name)
	}
	return weights
}

// reconfigure changes how callers wait. Each waiter finds out by itself when it has to leave now.
// weights are those of the tenants that wait. A tenant that has begun to wait since they were made
// keeps its weight until its next caller waits.
func (q *queue) reconfigure(c Config, now time.Duration, weights map[string]float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.set(c)
	if q.backlog == nil {
		return
	}
	q.backlog.reconfigure(c.Queue, now, weights)
}

// reconfigure changes how the backlog is served, and wakes all waiters.
func (b *backlog) reconfigure(c Queue, now time.Duration, weights map[string]float64) {
	old := b.config
	b.config = c
	if c.Target != old.Target || c.interval() != old.interval() {
		b.overloaded, b.late, b.emptied, b.relapse = false, now, now, 0
	}
	if (c.Target > 0) != (old.Target > 0) {
		b.joined = nil
	}
	for t, class := range b.tenants {
		if weight, known := weights[t.oldest().caller.Tenant]; known {
			class.weigh(t, weight)
		}
		for e := t.waiters.Front(); e != nil; e = e.Next() {
			w := e.Value.(*waiter)
			if c.Target > 0 && old.Target == 0 {
				b.joined = append(b.joined, w.since)
			}
			w.signal()
		}
	}
	slices.Sort(b.joined)
}

// tenants yields all tenants that wait, each with its class.
func (b *backlog) tenants(yield func(*tenant, *class) bool) {
	for _, c := range b.classes {
		for i := 0; c != nil && i < len(c.turns.list); i++ {
			if !yield(c.turns.list[i], c) {
				return
			}
		}
	}
}

// signal makes w check whether it has to leave earlier.
func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
