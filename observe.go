package weir

import (
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/internal/striped"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
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
	if g.chances != nil && !g.admissions().observeHopeless(g.name, g.epoch, yield) {
		return
	}
	if g.retries != nil && !g.retries.counts.observe(yield) {
		return
	}
	if g.limiter == nil && g.remote == nil && g.inFlight == nil {
		g.admissions().observeHeld(yield)
		return
	}
	metrics := inLimiter.Series(&g.admissions().calls)
	tokens := (g.limiter != nil || g.remote != nil) && !g.costs // only calls are counted
	if !g.admissions().observe(g.gotSlotAtOnce(), tokens, yield) {
		return
	}
	if l := g.inFlight; l != nil && !g.admissions().observeInFlight(g.name, inBound.Bound(l), yield) || g.limiter == nil {
		return
	}
	now := g.takeAt(g.now(), 0)
	if now.Limit == math.MaxInt || !yield(metrics.Available, float64(now.Remaining)) || !yield(metrics.Limit, float64(now.Limit)) {
		return
	}
	if period := inLimiter.Period(g.limiter); period > 0 {
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
	g.admissions().calls.Histograms(yield)
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
	if p.config.RetryShare != 0 && !g.admissions.retryCounts().observe(yield) {
		return
	}
	metrics := inLimiter.Series(&g.admissions.calls)
	// the buckets, if there are any, are held too, and count holds without room
	if n := g.holds.evicted.Load(); p.buckets == nil && n > 0 && !yield(metrics.NoRoom(), float64(n)) {
		return
	}
	if p.buckets == nil && p.limits == nil && p.withoutRoom == nil {
		g.admissions.observeHeld(yield)
		return
	}
	if !g.admissions.observe(0, p.buckets != nil || p.limits != nil && p.limits.costs == nil, yield) {
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
	g.admissions.calls.Histograms(yield)
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
func (a *admissions) observe(atOnce int64, tokens bool, yield func(*stat.Series, float64) bool) bool {
	return inLimiter.Observe(&a.calls, inLimiter.Observed(int64(a.allowed.Load())+atOnce, 0, tokens, false, false), yield)
}

// observeHeld is like observe, but for a gate without a limit. It yields nothing until a hold has
// refused a call.
func (a *admissions) observeHeld(yield func(*stat.Series, float64) bool) {
	if n := a.calls.Stats().Refused; n > 0 {
		yield(inLimiter.Series(&a.calls).Requests[instrument.Refused], float64(n))
	}
}

// Stats returns how many calls the gate's limits have allowed and refused. Refused includes
// the calls that a hold has refused. Shadowed and Near are 0. Without a limit, only the calls that
// a hold has refused are counted. For a gate of a [Group] the counts are those of all gates of the
// group.
func (g *Gate) Stats() limiter.Stats {
	s := g.admissions().stats()
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
	return inBound.AtOnce(l)
}

// admissions counts the calls at the limits of a gate, or of all gates of a group.
type admissions struct {
	allowed striped.Counter  // the calls that were allowed without a wait
	calls   limiter.Requests // the other calls

	retries        atomic.Pointer[retryCounts] // nil until there is a RetryShare
	hopeless       atomic.Int64
	hopelessSeries atomic.Pointer[stat.Series]

	lastRefusal atomic.Pointer[sharedRefusal]
	bound       atomic.Pointer[instrument.InFlightSeries]
}

// retryCounts returns the counts of the retry budgets of a gate, or of all gates of a group.
func (a *admissions) retryCounts() *retryCounts {
	if a.retries.Load() == nil {
		a.retries.CompareAndSwap(nil, &retryCounts{name: a.calls.Name(), created: time.Now()})
	}
	return a.retries.Load()
}

// stats returns the counts. Calls that a bound counts are not among them.
func (a *admissions) stats() limiter.Stats {
	s := a.calls.Stats()
	s.Allowed = int64(a.allowed.Load())
	return s
}

// admissions returns the counts, which are made for the first call that is counted.
func (g *Gate) admissions() *admissions {
	if a := g.counts.Load(); a != nil {
		return a
	}
	return g.newAdmissions()
}

func (g *Gate) newAdmissions() *admissions {
	a := new(admissions)
	inLimiter.InitRequests(&a.calls, g.name, g.epoch)
	g.counts.CompareAndSwap(nil, a)
	return g.counts.Load()
}

// countRefused counts a call that the limits or a hold have refused.
func (g *setup) countRefused() {
	inLimiter.Count(&g.admissions().calls, instrument.Refused)
	g.hold.refused()
}

// Views yields the view of the gate for package admin and the live page.
func (g *Gate) Views(yield func(view.View) bool) { yield(g.view()) }

// Views yields the view of the group for package admin and the live page.
func (g *Group[K]) Views(yield func(view.View) bool) {
	v := groupView[K]{viewOf[breakersView](g.breakers), g, g.parts.Load()}
	if v.parts.withoutRoom != nil {
		yield(boundedGroupView[K]{v})
	} else {
		yield(v)
	}
}

// viewOf returns the view of a source that has one view, which has the type V.
func viewOf[V any](source view.Viewer) (v V) {
	for one := range source.Views {
		v = one.(V)
	}
	return v
}

// breakerView is the view of a breaker.
type breakerView interface {
	view.View
	view.Stateful
	view.Tunable
	view.Resetter
	view.Guard
}

// gateView is what package admin and the live page see of a gate: what they see of its breaker, and
// more.
type gateView struct {
	breakerView

	g *Gate
	s *setup
}

// boundedGateView is gateView for a gate with a bound on calls in flight.
type boundedGateView struct {
	gateView
	view.Bounded
}

func (g *Gate) view() view.View {
	v := gateView{viewOf[breakerView](g.breaker), g, g.setup.Load()}
	if v.s.inFlight == nil {
		return v
	}
	return boundedGateView{v, viewOf[view.Bounded](v.s.inFlight)}
}

func (gateView) Kind() string           { return "gate" }
func (v gateView) Name() string         { return v.g.name }
func (v gateView) Hold(d time.Duration) { v.g.Hold(d) }

// Status adds the hold and the limiter to the status of the breaker.
func (v gateView) Status() view.Status {
	s := v.breakerView.Status()
	now := time.Since(v.g.epoch)
	if end, held := v.g.hold.endOf(int64(now)); held {
		s.Held = time.Duration(end) - now
	}
	if l, ok := v.s.limiter.(view.Viewer); ok {
		for one := range l.Views {
			if g, ok := one.(view.Guard); ok {
				s.NextToken = g.Status().NextToken
			}
		}
	}
	return s
}

// parts returns what has the settings of the gate: its breaker, its bucket, and its bound. All keys
// of a group have the same bound, which is a setting of the group.
func (v gateView) parts() []view.Tunable {
	parts := []view.Tunable{v.breakerView}
	if l, ok := v.s.limiter.(view.Viewer); ok {
		for one := range l.Views {
			if t, ok := one.(view.Tunable); ok {
				parts = append(parts, t)
			}
		}
	}
	if v.s.inFlight != nil && v.g.keyed == nil {
		parts = append(parts, viewOf[view.Tunable](v.s.inFlight))
	}
	return parts
}

func (v gateView) Settings() []view.Setting { return settingsOf(v.parts()) }

func (v gateView) Set(why string, s ...view.Setting) ([]view.Setting, error) {
	return setIn(v.parts(), why, s)
}

func (v gateView) Restore(why string, set, earlier []view.Setting) bool {
	return restoreIn(v.parts(), why, set, earlier)
}

// settingsOf returns the settings of parts.
func settingsOf(parts []view.Tunable) (all []view.Setting) {
	for _, p := range parts {
		all = append(all, p.Settings()...)
	}
	return all
}

// partOf returns the part that has the settings, or nil if none has all of them.
func partOf(parts []view.Tunable, s []view.Setting) view.Tunable {
	for _, p := range parts {
		has := func(one view.Setting) bool {
			return slices.ContainsFunc(p.Settings(), func(own view.Setting) bool { return own.Name == one.Name })
		}
		if len(s) > 0 && !slices.ContainsFunc(s, func(one view.Setting) bool { return !has(one) }) {
			return p
		}
	}
	return nil
}

func setIn(parts []view.Tunable, why string, s []view.Setting) ([]view.Setting, error) {
	p := partOf(parts, s)
	if p == nil {
		return nil, errors.New("weir: these settings cannot be set in one step")
	}
	return p.Set(why, s...)
}

func restoreIn(parts []view.Tunable, why string, set, earlier []view.Setting) bool {
	p := partOf(parts, set)
	return p != nil && p.Restore(why, set, earlier)
}

// breakersView is the view of a group of breakers.
type breakersView interface {
	view.View
	view.Stateful
	view.Tunable
	view.Resetter
	view.Group
}

// groupView is what package admin and the live page see of a group.
type groupView[K comparable] struct {
	breakersView

	g     *Group[K]
	parts *groupParts[K]
}

func (groupView[K]) Kind() string                      { return "gate_group" }
func (v groupView[K]) Hold(d time.Duration)            { v.g.holdAll(d) }
func (v groupView[K]) Busiest(n int) []limiter.BusyKey { return v.g.Busiest(n) }

func (v groupView[K]) Members() iter.Seq2[string, view.View] {
	return func(yield func(string, view.View) bool) {
		for key, gate := range v.g.All() {
			if !yield(keytext.Label(key), gate.view()) {
				return
			}
		}
	}
}

func (v groupView[K]) tunables() []view.Tunable {
	parts := []view.Tunable{v.breakersView}
	if v.parts.buckets != nil {
		parts = append(parts, viewOf[view.Tunable](v.parts.buckets))
	}
	if v.parts.withoutRoom != nil {
		parts = append(parts, groupBound[K]{v.g})
	}
	return parts
}

func (v groupView[K]) Settings() []view.Setting { return settingsOf(v.tunables()) }

func (v groupView[K]) Set(why string, s ...view.Setting) ([]view.Setting, error) {
	return setIn(v.tunables(), why, s)
}

func (v groupView[K]) Restore(why string, set, earlier []view.Setting) bool {
	return restoreIn(v.tunables(), why, set, earlier)
}

// boundedGroupView is groupView for a group with a bound on calls in flight.
type boundedGroupView[K comparable] struct{ groupView[K] }

func (v boundedGroupView[K]) Bound() (calls, now, configured int) {
	b := v.parts.inFlight(v.g)
	return b.Calls, b.Limit, v.g.parts.Load().config.MaxConcurrent
}

// groupBound is MaxConcurrent of a group as a setting.
type groupBound[K comparable] struct{ g *Group[K] }

func (b groupBound[K]) Settings() []view.Setting {
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	return b.settings()
}

// settings returns the bound. The lock is held.
func (b groupBound[K]) settings() []view.Setting {
	n := b.g.parts.Load().config.MaxConcurrent
	return []view.Setting{{Name: settings.MaxConcurrent, Value: strconv.Itoa(n), Version: b.g.slotsSet}}
}

func (b groupBound[K]) Set(_ string, s ...view.Setting) ([]view.Setting, error) {
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	next, err := settings.Next(b.settings(), s)
	if err == nil {
		err = b.change(next, settings.NextVersion())
	}
	if err != nil {
		return nil, err
	}
	return b.settings(), nil
}

func (b groupBound[K]) Restore(_ string, set, earlier []view.Setting) bool {
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	next, version, ok := settings.Undo(b.settings(), set, earlier)
	return ok && b.change(next, version) == nil
}

// change sets the bound, which may be 0 with Adaptive. The lock is held.
func (b groupBound[K]) change(s []view.Setting, version uint64) error {
	c := b.g.parts.Load().config
	if err := settings.Int(s, settings.MaxConcurrent, &c.MaxConcurrent); err != nil {
		return err
	}
	if !c.bounded() {
		return errors.New("weir: MaxConcurrent is 0, must be at least 1 without Adaptive")
	}
	if err := c.Validate(); err != nil {
		return err
	}
	b.g.setMaxConcurrent(c.MaxConcurrent, version)
	return nil
}

// holdAll refuses all calls of all keys for d, as [Gate.Hold] does for one key, but does not
// lengthen d by a random share. Calls that wait for a token continue to wait.
func (g *Group[K]) holdAll(d time.Duration) {
	if d <= 0 {
		return
	}
	g.holds.extendAll(int64(time.Since(g.epoch)), d)
	p := g.parts.Load()
	if p.buckets != nil {
		p.buckets.Inside(friend.Key{}).HoldAll(d)
	}
	if p.limits != nil {
		p.limits.holdAll(d)
	}
}
