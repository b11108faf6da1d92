package dashboard

import (
	"cmp"
	"sync"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

// explainer is a source that says why it refuses calls, such as a breaker, a gate or a bound on
// calls in flight.
type explainer interface {
	Explain() string
}

// extraReader is a source with details that are read together with its metrics. That happens within
// Observe, where the read.Set recovers, counts and logs a panic. Two of them are == if their
// sources are.
type extraReader struct {
	source stat.Source
	extras *extras
}

// Observe yields the metrics of the source and records its extras.
func (r extraReader) Observe(yield func(*stat.Series, float64) bool) {
	var seen sourceMetrics
	for s, value := range r.source.Observe {
		seen.add(s)
		if !yield(s, value) {
			return
		}
	}
	var own extra
	if x, explains := r.source.(explainer); explains && seen.breaker != nil {
		own.why = x.Explain()
	}
	if !r.extras.recording() {
		return
	}
	if b, ok := r.source.(busiestSource); ok {
		r.extras.recordBusiest(b)
	}
	if n, ok := r.source.(noticer); ok {
		r.extras.recordNotice(n)
	}
	if m, ok := r.source.(*alert.Monitor); ok {
		r.recordMonitor(m)
		return
	}
	switch x, explains := r.source.(explainer); {
	case seen.breaker != nil:
		r.extras.record(*seen.breaker, own)
	case seen.limiter != nil && explains:
		own.why = withPlainDurations(x.Explain())
		r.extras.record(*seen.limiter, own)
	}
	if v, ok := r.source.(view.Viewer); ok {
		for one := range v.Views {
			r.recordView(one, own, &seen)
		}
	}
	switch l, gate := r.source.(interface{ Limiter() limiter.Limiter }); {
	case seen.limiter == nil:
	case gate:
		r.recordLimit(seen.limiter.name, l.Limiter())
	default:
		r.recordLimit(seen.limiter.name, r.source)
	}
}

// Sources returns the sources that the source consists of, if it consists of others.
func (r extraReader) Sources() []stat.Source {
	if whole, ok := r.source.(interface{ Sources() []stat.Source }); ok {
		return r.extras.wrapSources(whole.Sources())
	}
	return nil
}

// sourceMetrics says which entries the metrics of a source have. A gate's entry has the name of its
// breaker, which may differ from the gate's. A window has no entry with extras.
type sourceMetrics struct {
	breaker, limiter, first *subject
	breakers                int                // the number of breakers and groups of breakers
	named                   map[string]subject // the other entries, without members
}

func (m *sourceMetrics) add(s *stat.Series) {
	if s == nil || s.Instrument == nil {
		return
	}
	of := subjectOf(s)
	if member := attribute(s, keyAttribute); member != "" {
		of.name = s.Values[0] // the entry of the group
	}
	switch s.Instrument {
	case instrument.BreakerState:
		if m.breaker == nil || *m.breaker != of {
			m.breaker, m.breakers = &of, m.breakers+1
		}
	case instrument.LimiterRequests:
		m.limiter = &of
	}
	switch {
	case m.first == nil:
		m.first = &of
	case of != *m.first:
		if m.named == nil {
			m.named = map[string]subject{}
		}
		m.named[of.name] = of
	}
}

// of returns the entry of a guard with the name: that of the breaker, if there is one, or else the
// one of that name, or the first one. It returns nil if there is none, and for a limiter.
func (m *sourceMetrics) of(name string) *subject {
	switch s, known := m.named[name]; {
	case m.first == nil:
		return nil
	case m.breakers == 1:
		return m.breaker
	case known:
		return &s
	case m.first.name == name || m.breakers == 0 && m.limiter == nil:
		return m.first
	}
	return nil
}

// recordMonitor records the rules and notifiers of a monitor.
func (r extraReader) recordMonitor(m *alert.Monitor) {
	for _, rule := range monitors.Rules(m) {
		r.extras.record(subject{class: alertsClass, name: rule.Name, severity: rule.Severity}, extra{rule: rule})
	}
	for _, n := range monitors.Notifiers(m) {
		r.extras.record(subject{class: notifiersClass, name: n.Name}, extra{notifier: n})
	}
}

// recordView records a view of the source.
func (r extraReader) recordView(v view.View, own extra, seen *sourceMetrics) {
	if g, ok := v.(view.Guard); ok {
		s := g.Status()
		if of := seen.of(v.Name()); of != nil && (of.class != callsClass || seen.breakers > 0) {
			r.extras.recordStatus(*of, own, &s)
		}
		if seen.limiter != nil {
			r.extras.addNextToken(seen.limiter.name, s.NextToken)
		}
	}
	if g, ok := v.(view.Group); ok && seen.breaker != nil {
		for key, m := range g.Shown() {
			if member, ok := m.(view.Guard); ok {
				s := member.Status()
				r.extras.recordStatus(subject{class: callsClass, name: seen.breaker.name + keySeparator + key}, extra{key: key}, &s)
			}
		}
	}
	if v.Kind() == "policy" && seen.limiter != nil { // one of several
		r.recordLimit(v.Name(), v)
		r.recordLimit(v.Name()+byNetwork, v)
	}
}

// byNetwork is the end of the name of the clients of a policy that are counted by network.
const byNetwork = " by network"

// recordLimit records the rate of a limiter, or of its view, as it was configured.
func (r extraReader) recordLimit(name string, of any) {
	switch l := of.(type) {
	case interface{ Limit() (limiter.Rate, int) }: // of package fleet, and of views of this module
		rate, burst := l.Limit()
		r.extras.addRate(name, rate, burst)
	case view.Tunable:
		for _, s := range l.Settings() {
			var rate limiter.Rate
			if s.Name == "rate" && rate.UnmarshalText([]byte(s.Value)) == nil {
				r.extras.addRate(name, rate, 0)
			}
		}
	case view.Viewer:
		for v := range l.Views {
			if _, again := v.(view.Viewer); !again {
				r.recordLimit(name, v)
			}
		}
	}
}

// monitors are functions of package alert beyond its API.
var monitors = alert.Inside(friend.Key{})

// recordStatus adds the status of a breaker to the details of its entry.
func (x *extras) recordStatus(of subject, e extra, s *view.Status) {
	explained := e.why // of a bound on calls in flight, if the breaker refuses none
	e.status = s
	if e.why = s.Reason; s.Margin != "" {
		e.why += "; " + s.Margin
	}
	e.why = withPlainDurations(cmp.Or(e.why, explained))
	if s.P99 > 0 {
		e.p50, e.p99 = roundedNumber(s.P50.Seconds()), roundedNumber(s.P99.Seconds())
	}
	x.record(of, e)
}

// addNextToken adds the time until a limiter has a free token to the details of its entry.
func (x *extras) addNextToken(name string, d time.Duration) {
	x.change(name, func(e *extra) { e.nextToken = d })
}

// addRate adds the rate of a limiter to the details of its entry. burst is 0 if it is not known.
func (x *extras) addRate(name string, r limiter.Rate, burst int) {
	if r == limiter.Unlimited() {
		return
	}
	x.change(name, func(e *extra) {
		e.events, e.per = r.Ratio()
		e.burst = burst
	})
}

// change changes the extra of an entry with calls.
func (x *extras) change(name string, change func(e *extra)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.recorded != nil {
		s := subject{class: callsClass, name: name}
		e := x.recorded[s]
		change(&e)
		x.recorded[s] = e
	}
}

// extra holds what the page shows of one entry in addition to its metrics.
type extra struct {
	p50, p99 number    // latencies in seconds
	busiest  []busyRow // the busiest refused keys
	// why it refuses calls: the reason, and the last failures on a line each
	why    string
	key    string       // of a member of a group
	status *view.Status // nil for sources without one

	// of a limiter
	nextToken time.Duration // until it has a free token
	events    int64         // the rate as it was configured, or 0
	per       time.Duration
	burst     int // or 0 if the metrics have it

	rule     *friend.Rule // of an alert
	notifier *friend.Notifier
}

// extras holds the extras of the current sampling. Nothing is recorded while a source is read
// because it is being added.
type extras struct {
	mu       sync.Mutex
	recorded map[subject]extra // nil between samplings
	notices  []string
}

// wrapSources wraps the sources.
func (x *extras) wrapSources(sources []stat.Source) []stat.Source {
	wrapped := make([]stat.Source, len(sources))
	for n, s := range sources {
		if s != nil {
			wrapped[n] = extraReader{source: s, extras: x}
		}
	}
	return wrapped
}

func (x *extras) recording() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.recorded != nil
}

func (x *extras) record(s subject, e extra) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.recorded != nil {
		e.busiest = x.recorded[s].busiest
		x.recorded[s] = e
	}
}

func (x *extras) start() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recorded, x.notices = map[subject]extra{}, nil
}

func (x *extras) finish() (recorded map[subject]extra, notices []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	recorded, x.recorded = x.recorded, nil
	return recorded, x.notices
}
