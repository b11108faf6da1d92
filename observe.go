package weir

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/adminhook"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/report"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Observe yields the metrics of the gate's breaker, throttle and limits: a Gate is a [stat.Source].
// It blocks only as long as the limiter's Take(0) does.
func (g *Gate) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range g.breaker.Observe {
		if !yield(s, v) {
			return
		}
	}
	g.setup.Load().observe(yield)
}

// observe yields the metrics of the throttle and the limits.
func (g *setup) observe(yield func(*stat.Series, float64) bool) {
	if g.throttle != nil {
		for s, v := range g.throttle.Observe {
			if !yield(s, v) {
				return
			}
		}
	}
	if g.chances != nil && !g.admissions.observeHopeless(g.name, g.epoch, yield) {
		return
	}
	if g.limiter == nil && g.remote == nil && g.inFlight == nil {
		g.admissions.observeHeld(g.name, g.epoch, yield)
		return
	}
	metrics := g.admissions.series(g.name, g.epoch)
	tokens := g.limiter != nil || g.remote != nil
	if !g.admissions.observe(metrics, g.gotSlotAtOnce(), tokens, yield) {
		return
	}
	if l := g.inFlight; l != nil && !g.admissions.observeInFlight(g.name, slots.Bound(l), yield) || g.limiter == nil {
		return
	}
	now := g.takeAt(g.now(), 0)
	if now.Limit == math.MaxInt || !yield(metrics.Available, float64(now.Remaining)) || !yield(metrics.Limit, float64(now.Limit)) {
		return
	}
	if period := limiters.Period(g.limiter); period > 0 {
		yield(metrics.Period, period.Seconds())
	}
}

// Histograms yields the durations of all calls, if breaker.Config.Latency is set, and of all waits,
// if Config.MaxWait is set. It takes no lock.
func (g *Gate) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for s, h := range g.breaker.Histograms {
		if !yield(s, h) {
			return
		}
	}
	g.admissions.histograms(g.name, g.epoch, yield)
}

// Observe yields the metrics of the breakers by key, as [breaker.Group.Observe] does. It also
// yields metrics of the limits, for all keys together. The calls in flight are those of all keys,
// but each limit is that of a single key. If the bounds are adaptive, the metric is the lowest
// bound of a key. A Group is a [stat.Source].
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	for s, v := range g.breakers.Observe {
		if !yield(s, v) {
			return
		}
	}
	p := g.parts.Load()
	if p.config.RefuseHopeless && !g.admissions.observeHopeless(g.name, g.epoch, yield) {
		return
	}
	metrics := g.admissions.series(g.name, g.epoch)
	// the buckets, if there are any, are held too, and count holds without room
	if n := g.holds.evicted.Load(); p.buckets == nil && n > 0 && !yield(metrics.NoRoom(), float64(n)) {
		return
	}
	if p.buckets == nil && p.withoutRoom == nil {
		g.admissions.observeHeld(g.name, g.epoch, yield)
		return
	}
	if !g.admissions.observe(metrics, 0, p.buckets != nil, yield) {
		return
	}
	if p.withoutRoom != nil {
		if !g.admissions.observeInFlight(g.name, p.inFlight(g), yield) {
			return
		}
	}
	if p.buckets == nil {
		return
	}
	evictions, noRoom, limit, period := p.buckets.Inside(friend.Key{}).Figures()
	if !yield(metrics.Keys, float64(p.buckets.Len())) || !yield(metrics.Evictions, float64(evictions)) || !yield(metrics.NoRoom(), float64(noRoom)) {
		return
	}
	if limit < math.MaxInt && yield(metrics.Limit, float64(limit)) {
		yield(metrics.Period, period.Seconds())
	}
}

// Histograms yields the durations of the calls by key: see [breaker.Group.Histograms]. If
// Config.MaxWait is set, it also yields the durations of the waits of all keys together.
func (g *Group[K]) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for s, h := range g.breakers.Histograms {
		if !yield(s, h) {
			return
		}
	}
	g.admissions.histograms(g.name, g.epoch, yield)
}

// series returns the series, which are made when they are first read.
func (a *admissions) series(name string, began time.Time) *instrument.LimiterSeries {
	a.once.Do(func() { a.metrics = instrument.NewLimiterSeries(name, began) })
	return a.metrics
}

// observeInFlight yields the calls in flight and their bound. It reports whether yield wants more.
func (a *admissions) observeInFlight(name string, b instrument.Bound, yield func(*stat.Series, float64) bool) bool {
	bound := a.bound.Load()
	if bound == nil {
		a.bound.CompareAndSwap(nil, instrument.NewInFlightSeries(name))
		bound = a.bound.Load()
	}
	return bound.Yield(b, yield)
}

// observeHopeless yields the number of hopeless calls. It reports whether yield wants more.
func (a *admissions) observeHopeless(name string, began time.Time, yield func(*stat.Series, float64) bool) bool {
	series := a.hopelessSeries.Load()
	if series == nil {
		series = instrument.GateHopelessCalls.Series(name)
		series.Created = began
		a.hopelessSeries.CompareAndSwap(nil, series)
		series = a.hopelessSeries.Load()
	}
	return yield(series, float64(a.hopeless.Load()))
}

// observe yields the counts. atOnce is the number of allowed calls that a has not counted, and
// tokens says whether calls take tokens. It reports whether yield wants more.
func (a *admissions) observe(metrics *instrument.LimiterSeries, atOnce int64, tokens bool, yield func(*stat.Series, float64) bool) bool {
	for i, n := range [...]*atomic.Int64{
		instrument.Allowed: &a.allowed, instrument.Refused: &a.refused, instrument.Waited: &a.waited, instrument.Cancelled: &a.cancelled,
	} {
		calls := float64(n.Load())
		if i == instrument.Allowed {
			calls += float64(atOnce)
		}
		// A call takes one token.
		if !yield(metrics.Requests[i], calls) || tokens && !yield(metrics.Tokens[i], calls) {
			return false
		}
	}
	return yield(metrics.Waiting, float64(a.waiting.Load()))
}

// observeHeld is like observe, but for a gate without a limit. It yields nothing until a hold has
// refused a call.
func (a *admissions) observeHeld(name string, began time.Time, yield func(*stat.Series, float64) bool) {
	if n := a.refused.Load(); n > 0 {
		yield(a.series(name, began).Requests[instrument.Refused], float64(n))
	}
}

// histograms yields the durations of the waits that ended with a token.
func (a *admissions) histograms(name string, began time.Time, yield func(*stat.Series, stat.Histogram) bool) {
	if times := a.waits.Load(); times != nil {
		waits := window.Latency(times.Snapshot())
		yield(a.series(name, began).Wait, waits.Histogram())
	}
}

// Admissions returns how many calls the gate's limits have allowed and refused. Refused includes
// the calls that a hold has refused. Shadowed and Near are 0. Without a limit, only the calls that
// a hold has refused are counted. For a gate of a [Group] the counts are those of all gates of the
// group.
func (g *Gate) Admissions() limiter.Stats {
	s := g.admissions.stats()
	s.Allowed += g.gotSlotAtOnce()
	return s
}

// gotSlotAtOnce returns the number of calls that got a slot without a wait and are counted by the
// bound on calls in flight.
func (g *Gate) gotSlotAtOnce() int64 {
	if g.own == nil {
		return 0
	}
	l := g.own.inFlight.Load()
	if l == nil {
		return 0
	}
	return slots.AtOnce(l)
}

// admissions counts the calls at the limits of a gate, or of all gates of a group.
type admissions struct {
	allowed, waited, refused, cancelled atomic.Int64

	hopeless       atomic.Int64
	hopelessSeries atomic.Pointer[stat.Series]

	waiting atomic.Int64
	waits   atomic.Pointer[latency.Histogram] // nil if MaxWait was never set

	places      atomic.Pointer[places.Places] // see Gate
	lastRefusal atomic.Pointer[sharedRefusal]
	once        sync.Once
	shared      bool // by all gates of a group
	metrics     *instrument.LimiterSeries
	bound       atomic.Pointer[instrument.InFlightSeries]
}

func (a *admissions) stats() limiter.Stats {
	return limiter.Stats{
		Allowed: a.allowed.Load(), Waited: a.waited.Load(),
		Refused: a.refused.Load(), Cancelled: a.cancelled.Load(), Waiting: a.waiting.Load(),
	}
}

// countRefused counts a call that the limits or a hold have refused.
func (g *setup) countRefused() {
	g.admissions.refused.Add(1)
	g.hold.refused()
}

// measureWaits keeps the durations of waits from now on if calls may wait.
func (a *admissions) measureWaits(longest time.Duration) {
	if longest > 0 {
		a.waits.CompareAndSwap(nil, new(latency.Histogram))
	}
}

// sameMoment bounds the difference between the Until times of two refusals that share an error.
const sameMoment = time.Microsecond

// sharedRefusal is an error that several refused calls share.
type sharedRefusal struct {
	err     limiter.LimitedError
	places  *places.Places
	maxWait time.Duration
}

// refusal returns the error of a call that is refused at once. Calls that are refused until the
// same moment share one error, so that refusals under load do not allocate. If p is not nil, p
// chooses the moment at which each refused caller should retry.
func (g *setup) refusal(e limiter.LimitedError, p *places.Places) error {
	a := g.admissions
	last := a.lastRefusal.Load()
	if last != nil && last.err.Limit == e.Limit && last.err.Reason == e.Reason && last.places == p && last.maxWait == g.longestWait {
		if early := last.err.Until.Sub(e.Until); early >= 0 && early < sameMoment {
			return &last.err
		}
	}
	next := &sharedRefusal{err: e, places: p, maxWait: g.longestWait}
	limiters.Spread(&next.err, p)
	limiters.NameMaxWait(&next.err, g.longestWait)
	a.lastRefusal.Store(next)
	return &next.err
}

// retryPlaces counts a call that the gate's limiter has refused, and returns the moments at which
// the callers of such calls should retry, or nil if the rate of the limiter is not known.
func (g *setup) retryPlaces() *places.Places {
	interval := limiters.Interval(g.limiter)
	if interval <= 0 {
		return nil
	}
	p := g.places.Load()
	if p == nil {
		g.places.CompareAndSwap(nil, places.New())
		p = g.places.Load()
	}
	p.Refuse(interval)
	return p
}

// The live page reads gates and groups of gates through these functions.
var _ = func() bool {
	report.Gates = func(source any, yield func(*report.Breaker)) bool {
		r, ok := source.(interface {
			report(yield func(*report.Breaker))
		})
		if ok {
			r.report(yield)
		}
		return ok
	}
	report.Parts = append(report.Parts, func(source any, yield func(name string, limiter any)) {
		if s, ok := source.(interface {
			limiters(yield func(name string, limiter any))
		}); ok {
			s.limiters(yield)
		}
	})
	return true
}()

func (g *Gate) limiters(yield func(name string, limiter any)) {
	if l := g.Limiter(); l != nil {
		yield(g.name, l)
	}
}

func (g *Group[K]) limiters(yield func(name string, limiter any)) {
	if buckets := g.parts.Load().buckets; buckets != nil {
		yield(g.name, buckets)
	}
}

// report yields the report of the breaker, with the time until the hold ends.
func (g *Gate) report(yield func(*report.Breaker)) {
	report.Breakers(g.breaker, func(r *report.Breaker) {
		if end, held := g.hold.endOf(int64(time.Since(g.epoch))); held {
			r.Held = time.Duration(end) - time.Since(g.epoch)
		}
		yield(r)
	})
}

// report yields the keys that have series of their own.
func (g *Group[K]) report(yield func(*report.Breaker)) { report.Breakers(g.breakers, yield) }

// Package admin uses gates through this function.
var _ = func() bool {
	adminhook.OfGate = func(source any) (o adminhook.Object, ok bool) {
		s, ok := source.(interface{ adminObject() adminhook.Object })
		if ok {
			o = s.adminObject()
		}
		return o, ok
	}
	return true
}()

func (g *Gate) adminObject() adminhook.Object {
	o, _ := adminhook.OfBreaker(g.breaker)
	o.Kind, o.Name, o.Hold = "gate", g.name, g.Hold
	s := g.setup.Load()
	if l, _ := adminhook.OfLimiter(s.limiter); l.Limits != nil {
		o.Limits = l.Limits
	}
	if s.inFlight != nil {
		l, _ := adminhook.OfInFlight(s.inFlight)
		o.Slots = l.Slots
		if g.admissions.shared {
			o.Slots.Fixed = true // all keys have the same limit
		}
	}
	return o
}

// holdAll refuses all calls of all keys for d, as [Gate.Hold] does for one key, but does not
// lengthen d by a random share. Calls that wait for a token continue to wait.
func (g *Group[K]) holdAll(d time.Duration) {
	if d <= 0 {
		return
	}
	g.holds.extendAll(int64(time.Since(g.epoch)), d)
	if p := g.parts.Load(); p.buckets != nil {
		l, _ := adminhook.OfLimiter(p.buckets)
		l.Hold(d)
	}
}

func (g *Group[K]) adminObject() adminhook.Object {
	o, _ := adminhook.OfBreaker(g.breakers)
	o.Kind, o.Busiest, o.Hold = "gate_group", func(n int) any { return g.Busiest(n) }, g.holdAll
	o.Members = func(yield func(string, adminhook.Object) bool) {
		for key, gate := range g.All() {
			if !yield(keytext.Label(key), gate.adminObject()) {
				return
			}
		}
	}
	p := g.parts.Load()
	if p.buckets != nil {
		l, _ := adminhook.OfLimiter(p.buckets)
		o.Limits = l.Limits
	}
	if p.withoutRoom != nil {
		o.Slots = &adminhook.Slots{
			InFlight: func() int { return p.inFlight(g).Calls },
			Now:      func() int { return p.inFlight(g).Limit },
			Limit:    g.adminMaxConcurrent(),
		}
	}
	return o
}

// adminMaxConcurrent returns MaxConcurrent as package admin sets it.
func (g *Group[K]) adminMaxConcurrent() *adminhook.Setting {
	return &adminhook.Setting{
		Get: func() adminhook.Value {
			g.mu.Lock()
			defer g.mu.Unlock()
			return adminhook.Value{V: g.parts.Load().config.MaxConcurrent, Number: g.slotsSet}
		},
		Set: func(v any, _ string) adminhook.Value {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.setMaxConcurrent(v.(int), adminhook.NextNumber())
			return adminhook.Value{V: v, Number: g.slotsSet}
		},
		Restore: func(set, earlier adminhook.Value, _ string) bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.slotsSet != set.Number {
				return false
			}
			g.setMaxConcurrent(earlier.V.(int), earlier.Number)
			return true
		},
	}
}
