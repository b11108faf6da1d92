package breaker

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// otherKey is the key of the series that all keys without series of their own share.
const otherKey = "_other"

// groupObservers is what a group keeps for its observers. A member gets series of its own when it
// is added, or is among the others for as long as the group has it. So no counter passes from one
// series to another.
type groupObservers struct {
	name   string
	others summableSeries
	gone   []sum // by shard, guarded by its lock: the counters of the others that left

	mu  sync.Mutex          // taken under the lock of a shard
	own map[string]struct{} // the keys that have series of their own, as text
	max int                 // how many these may be

	showing sync.Mutex // held by observers
	highest shownSum   // the highest counters of the others that were shown
}

func (o *groupObservers) init(name string, t0 time.Time, maxOwn, shards int) {
	o.name, o.max, o.own = name, maxOwn, map[string]struct{}{}
	o.others = newSummableSeries(name, otherKey, t0)
	o.highest.values = make([]float64, len(o.others.order))
	o.gone = make([]sum, shards)
}

// ownSeries are the series of one key.
type ownSeries struct {
	key   string // as text
	began time.Time

	// guarded by groupObservers.showing
	*series               // nil until they are shown
	totals  window.Totals // when the series were last shown
	usedAt  time.Time     // when a call or a refusal was last found
}

// takeSeries returns series for a new key, or nil if the key is to be among the others.
func (o *groupObservers) takeSeries(key string, began time.Time) *ownSeries {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, taken := o.own[key] // by another key with the same text
	if taken || len(o.own) >= o.max || key == otherKey || key == "" {
		return nil
	}
	o.own[key] = struct{}{}
	return &ownSeries{key: key, began: began}
}

// leave ends the series of a member that leaves the group, or keeps its counts among the others.
// The lock of its shard is held.
func (o *groupObservers) leave(b *Breaker, own *ownSeries, shard int) {
	if own == nil {
		gone := &o.gone[shard]
		gone.addMetrics(b, time.Now())
		gone.members = perState[int64]{}
		gone.addLatency(b)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.own, own.key)
}

// maxIdle is how long a key keeps series of its own without calls, if it is idle. So maxIdle bounds
// how fast new keys can make new series.
const maxIdle = 10 * time.Minute

// isIdle is called when the series are shown. It reports whether they have shown no new calls for
// maxIdle.
func (s *ownSeries) isIdle(name string, totals window.Totals, now time.Time) bool {
	if s.series == nil {
		s.series = newSeries(name, s.key, s.began)
	}
	if totals != s.totals || s.usedAt.IsZero() {
		s.totals, s.usedAt = totals, now
	}
	return now.Sub(s.usedAt) >= maxIdle
}

// Observe yields the metrics of the group, and for each key the metrics of [Breaker.Observe]. The
// key is the attribute weir.group.key.
//
// Up to GroupConfig.MaxSeries keys have series of their own. All other keys share the series with
// the key _other: its counters are sums, which include such keys that were evicted and unguarded
// calls, and weir.breaker.state is the number of keys in each state. It has no other gauges. Keys
// with an empty text, and keys with the same text as another key, belong to _other too.
//
// The number of series is bounded. The time that Observe takes grows with the number of keys.
// Observe blocks new keys only while it copies a part of the keys. It evicts keys with series of
// their own that are idle and had no call for 10 minutes.
func (g *Group[K]) Observe(yield func(*stat.Series, float64) bool) {
	own, others := g.collect((*sum).addMetrics)
	for _, m := range own {
		if !m.breaker.observe(m.own.series, yield) {
			return
		}
	}
	for i, s := range g.observers.others.order {
		if !yield(s, others.values[i]) {
			return
		}
	}
	for i, n := range [4]int64{int64(g.members.Len()), g.members.Evictions(), g.unguardedCalls.Load(), g.places.prevented.Load()} {
		if !yield(g.series[i], float64(n)) {
			return
		}
	}
}

// Histograms yields the durations of the calls, if Config.Latency is set: one histogram for each
// key with series of its own, and one with the key _other for all other keys together. The
// histogram of _other has no exemplars.
func (g *Group[K]) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if !g.rules.Load().config.Latency {
		return
	}
	own, others := g.collect(func(to *sum, b *Breaker, _ time.Time) { to.addLatency(b) })
	for _, m := range own {
		b := m.breaker
		h := b.lifetimeLatency(b.regime.Load()).Histogram()
		h.Exemplars = b.keptExemplars()
		if !yield(m.own.duration, h) {
			return
		}
	}
	yield(g.observers.others.duration, others.durations().Histogram())
}

// collect returns the members that have series of their own, and the sum of all other breakers. The
// function add adds one breaker to that sum.
//
// For each shard the members and the sum of those that left are copied under its lock, so each call
// is in exactly one of them. A member that leaves after the copy keeps its counts.
func (g *Group[K]) collect(add func(to *sum, b *Breaker, now time.Time)) (own []*member[K], others shownSum) {
	o := &g.observers
	o.showing.Lock()
	defer o.showing.Unlock()
	var all sum
	add(&all, g.unguarded, time.Now())
	// the unguarded breaker belongs to no key, so its state does not count
	all.members, all.entered, all.spent = perState[int64]{}, perState[int64]{}, perState[float64]{}
	shown := map[string]bool{}
	var members []*member[K]
	var regimes []*regime
	for i := range g.members.Shards() {
		members = g.members.AppendShard(i, members[:0], func() { all.add(&o.gone[i]) })
		regimes = readAhead(members, regimes[:0])
		now := time.Now() // not for each member: reading the clock waits for all earlier loads
		for _, m := range members {
			switch {
			case m.own == nil:
				add(&all, m.breaker, now)
			case shown[m.own.key]: // another key with the same text has taken the series meanwhile
			default:
				shown[m.own.key] = true
				own = append(own, m)
				if m.own.isIdle(o.name, m.breaker.Totals(), now) {
					g.members.EvictIdle(m.key, now)
				}
			}
		}
	}
	others = shownSum{all.values(), all.latency}
	o.highest.raiseCounters(&others, o.others.order)
	return own, others
}

// readAhead loads what addMetrics reads. Many members are in no cache. A processor waits for the
// memory of several of them at once, but only if it has little to do between the loads.
func readAhead[K comparable](members []*member[K], regimes []*regime) []*regime {
	for _, m := range members {
		b := m.breaker
		regimes = append(regimes, b.regime.Load())
		b.rare.Load()
		b.refused.Load()
	}
	for _, p := range regimes {
		p.until()
		p.tally.Latest()
		p.tally.Streak()
	}
	return regimes
}

// newGroupSeries returns the series of the group itself: its keys, evictions, unguarded calls and
// prevented openings.
func newGroupSeries(name string, began time.Time) (all [4]*stat.Series) {
	for i, instrument := range []*stat.Instrument{
		instrument.BreakerGroupMembers, instrument.BreakerGroupEvictions, instrument.BreakerGroupUnguarded, instrument.BreakerGroupPrevented,
	} {
		all[i] = instrument.Series(name)
		all[i].Created = began
	}
	return all
}

// summableSeries has the series of a breaker, and those that can be summed over breakers in the
// order of sum.values.
type summableSeries struct {
	*series
	order []*stat.Series
}

func newSummableSeries(name, key string, began time.Time) summableSeries {
	s := newSeries(name, key, began)
	l := summableSeries{series: s}
	for i := range stateCount {
		l.order = append(l.order, s.state[i], s.transitions[i], s.time[i])
	}
	l.order = append(l.order, s.calls[:]...)
	l.order = append(l.order, s.slow, s.late, s.abandoned, s.dropped)
	return l
}

// sum is a sum of the metrics of breakers.
type sum struct {
	members, entered         perState[int64]
	spent                    perState[float64] // in nanoseconds
	counts                   tally.Counts
	late, abandoned, dropped int64
	latency                  *window.Latency // nil for no call
}

// addMetrics adds the metrics of b, except durations. It reads few lines of memory, because those
// of many breakers are in no cache.
func (a *sum) addMetrics(b *Breaker, now time.Time) {
	at := b.inClock(b.clock.Peek(now), clock.ReadTolerance)
	p := b.regime.Load()
	stay, spent, entered := p.history(at)
	*spent.of(stay.state) += max(at-stay.since, 0)
	*a.members.of(stay.state)++
	for i := range stateCount {
		a.entered[i] += entered[i]
		a.spent[i] += float64(spent[i])
	}
	counts := p.totals()
	counts.Refused = int64(b.refused.Load())
	a.counts = a.counts.Plus(counts)
	if r := b.rare.Load(); r != nil {
		a.late += r.late.Load()
		a.abandoned += r.abandoned.Load()
		a.dropped += r.changes.dropped.Load()
	}
}

// addLatency adds the durations of the calls of b.
func (a *sum) addLatency(b *Breaker) {
	if p := b.regime.Load(); p.hasLatency() {
		if all := b.lifetimeLatency(p); all.Count() > 0 {
			a.addDurations(&all)
		}
	}
}

func (a *sum) addDurations(more *window.Latency) {
	all := *more
	if a.latency != nil {
		all = a.latency.Plus(*more)
	}
	a.latency = &all
}

// add adds another sum.
func (a *sum) add(more *sum) {
	for i := range stateCount {
		a.members[i] += more.members[i]
		a.entered[i] += more.entered[i]
		a.spent[i] += more.spent[i]
	}
	a.counts = a.counts.Plus(more.counts)
	a.late, a.abandoned, a.dropped = a.late+more.late, a.abandoned+more.abandoned, a.dropped+more.dropped
	if more.latency != nil {
		a.addDurations(more.latency)
	}
}

// values returns the values of summableSeries.order.
func (a *sum) values() (values []float64) {
	for i := range stateCount {
		values = append(values, float64(a.members[i]), float64(a.entered[i]), a.spent[i]/float64(time.Second))
	}
	for _, n := range byOutcome(window.Counts(a.counts)) {
		values = append(values, float64(n))
	}
	return append(values, float64(a.counts.Slow), float64(a.late), float64(a.abandoned), float64(a.dropped))
}

// shownSum is a sum as it is shown.
type shownSum struct {
	values  []float64       // of summableSeries.order
	latency *window.Latency // nil for no call
}

func (a *shownSum) durations() (l window.Latency) {
	if a.latency != nil {
		l = *a.latency
	}
	return l
}

// raiseCounters replaces each counter of now that is below the highest value that was shown before.
// a holds these highest values. Sums of the same times in a different order differ by rounding. The
// time in a state may become shorter, because a transition may have a time before the latest
// observation. And a member that leaves while it is added still counts the calls that are in flight
// then. Prometheus takes a counter that falls, even by a nanosecond, for a counter that restarted
// from 0.
func (a *shownSum) raiseCounters(now *shownSum, order []*stat.Series) {
	for i, s := range order {
		if s.Instrument.Kind == stat.Counter {
			a.values[i] = max(a.values[i], now.values[i])
			now.values[i] = a.values[i]
		}
	}
	if a.latency == nil && now.latency == nil {
		return
	}
	highest, shown := a.durations(), now.durations()
	for i := range shown.Counts {
		shown.Counts[i] = max(shown.Counts[i], highest.Counts[i])
	}
	shown.Sum, shown.Max = max(shown.Sum, highest.Sum), max(shown.Max, highest.Max)
	shown.Under, shown.Over = max(shown.Under, highest.Under), max(shown.Over, highest.Over)
	a.latency, now.latency = &shown, &shown
}
