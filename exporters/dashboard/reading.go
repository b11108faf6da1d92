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
	"github.com/weir-go/weir/view"
	"github.com/weir-go/weir/window"
)

// latencySource is a source with latencies, such as a breaker or a gate.
type latencySource interface {
	stat.Source
	Latency() window.Latency
}

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
	// A gate's entry has the name of its breaker, which may differ from the gate's. A window has no
	// entry with extras.
	var breakerName, limiterName *string
	var first *stat.Series
	for s, value := range r.source.Observe {
		switch {
		case s == nil:
		case s.Instrument == instrument.BreakerState:
			breakerName = &s.Values[0]
		case s.Instrument == instrument.LimiterRequests:
			limiterName = &s.Values[0]
		}
		if first == nil {
			first = s
		}
		if !yield(s, value) {
			return
		}
	}
	var own extra
	if breakerName != nil {
		own = r.readOwn()
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
		for _, rule := range monitors.Rules(m) {
			r.extras.record(subject{class: alertsClass, name: rule.Name, severity: rule.Severity}, extra{rule: rule})
		}
		for _, n := range monitors.Notifiers(m) {
			r.extras.record(subject{class: notifiersClass, name: n.Name}, extra{notifier: n})
		}
		return
	}
	if breakerName != nil {
		r.extras.record(subject{class: callsClass, name: *breakerName}, own)
	} else if limiterName != nil {
		if x, ok := r.source.(explainer); ok {
			own.why = withPlainDurations(x.Explain())
			r.extras.record(subject{class: callsClass, name: *limiterName}, own)
		}
	}
	if v, ok := r.source.(view.Viewer); ok {
		for one := range v.Views {
			r.recordView(one, own, breakerName, limiterName)
			// a guard of a user has its own metrics
			if g, ok := one.(view.Guard); ok && breakerName == nil && limiterName == nil && first != nil {
				s := g.Status()
				r.extras.recordStatus(subjectOf(first), own, &s)
			}
		}
	} else if limiterName != nil {
		r.recordLimit(*limiterName, r.source)
	}
}

// recordView records a view of the source. breakerName and limiterName are the names in its
// metrics, or nil. They may differ from each other, and from the name of the view.
func (r extraReader) recordView(v view.View, own extra, breakerName, limiterName *string) {
	if g, ok := v.(view.Guard); ok {
		s := g.Status()
		if breakerName != nil {
			r.extras.recordStatus(subject{class: callsClass, name: *breakerName}, own, &s)
		}
		if limiterName != nil {
			r.extras.addNextToken(*limiterName, s.NextToken)
		}
	}
	if g, ok := v.(view.Group); ok && breakerName != nil {
		for key, m := range g.Shown() {
			if member, ok := m.(view.Guard); ok {
				s := member.Status()
				r.extras.recordStatus(subject{class: callsClass, name: *breakerName + keySeparator + key}, extra{key: key}, &s)
			}
		}
	}
	if limiterName != nil {
		name := *limiterName
		if v.Kind() == "policy" { // one of several
			name = v.Name()
		}
		r.recordLimit(name, v)
	}
}

// recordLimit records the rate of a limiter as it was configured.
func (r extraReader) recordLimit(name string, limiterOrView any) {
	switch l := limiterOrView.(type) {
	case interface{ Limit() (limiter.Rate, int) }: // of package fleet
		rate, burst := l.Limit()
		r.extras.addRate(name, rate, burst)
	case view.Tunable:
		var rate limiter.Rate
		for _, s := range l.Settings() {
			if s.Name == "rate" && rate.UnmarshalText([]byte(s.Value)) == nil {
				r.extras.addRate(name, rate, 0)
			}
		}
	}
}

// monitors are functions of package alert beyond its API.
var monitors = alert.Inside(friend.Key{})

// readOwn reads what a source with the metrics of a breaker says by its methods.
func (r extraReader) readOwn() (e extra) {
	if l, ok := r.source.(latencySource); ok {
		if d := l.Latency(); d.Count() > 0 {
			e.p50, e.p99 = roundedNumber(d.Quantile(0.5).Seconds()), roundedNumber(d.Quantile(0.99).Seconds())
		}
	}
	if x, ok := r.source.(explainer); ok {
		e.why = x.Explain()
	}
	return e
}

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
