package weir

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/internal/instrument"
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
	if l := g.inFlight; l != nil && !g.admissions.observeInFlight(g.name, slotHooks.Bound(l), yield) || g.limiter == nil {
		return
	}
	now := g.takeAt(g.now(), 0)
	if now.Limit == math.MaxInt || !yield(metrics.Available, float64(now.Remaining)) || !yield(metrics.Limit, float64(now.Limit)) {
		return
	}
	if period := bridge.Describe(g.limiter).Period; period > 0 {
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
	evictions, noRoom, limit, period := bridge.GroupFigures(p.buckets)
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
