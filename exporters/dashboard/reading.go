package dashboard

import (
	"cmp"
	"sync"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/report"
	"github.com/weir-go/weir/stat"
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
	for s, value := range r.source.Observe {
		switch {
		case s == nil:
		case s.Instrument == instrument.BreakerState:
			breakerName = &s.Values[0]
		case s.Instrument == instrument.LimiterRequests:
			limiterName = &s.Values[0]
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
	recordBreaker := func(b *report.Breaker) { r.extras.recordBreaker(own, b) }
	switch {
	case report.Breakers != nil && report.Breakers(r.source, recordBreaker):
	case report.Gates != nil && report.Gates(r.source, recordBreaker):
	case report.Alerts != nil && report.Alerts(r.source, r.extras.recordRule, r.extras.recordNotifier):
	case breakerName != nil:
		r.extras.record(subject{class: callsClass, name: *breakerName}, own)
	case limiterName != nil:
		if x, ok := r.source.(explainer); ok {
			own.why = withPlainDurations(x.Explain())
			r.extras.record(subject{class: callsClass, name: *limiterName}, own)
		}
	}
	if limiterName != nil && report.Limiters != nil {
		r.extras.recordLimiter(*limiterName, r.source)
		for _, parts := range report.Parts {
			parts(r.source, r.extras.recordLimiter)
		}
	}
}

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

// recordBreaker adds the report of a breaker to the details of its source, or records a member of a
// group.
func (x *extras) recordBreaker(e extra, b *report.Breaker) {
	explained := e.why // of a bound on calls in flight, if the breaker refuses none
	e.breaker = b
	if e.why = b.Reason; b.Margin != "" {
		e.why += "; " + b.Margin
	}
	e.why = withPlainDurations(cmp.Or(e.why, explained))
	if b.Key == "" {
		x.record(subject{class: callsClass, name: b.Name}, e)
		return
	}
	if b.P99 > 0 {
		e.p50, e.p99 = roundedNumber(b.P50.Seconds()), roundedNumber(b.P99.Seconds())
	}
	x.record(subject{class: callsClass, name: b.Name + keySeparator + b.Key}, e)
}

// recordLimiter adds the state of a limiter to the details of its entry.
func (x *extras) recordLimiter(name string, limiter any) {
	state, s := report.Limiters(limiter), subject{class: callsClass, name: name}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.recorded != nil {
		e := x.recorded[s]
		e.limiter = state
		x.recorded[s] = e
	}
}

func (x *extras) recordRule(rule *report.Rule) {
	x.record(subject{class: alertsClass, name: rule.Name, severity: rule.Severity}, extra{rule: rule})
}

func (x *extras) recordNotifier(n *report.Notifier) {
	x.record(subject{class: notifiersClass, name: n.Name}, extra{notifier: n})
}

// extra holds what the page shows of one entry in addition to its metrics.
type extra struct {
	p50, p99 number    // latencies in seconds
	busiest  []busyRow // the busiest refused keys
	// why it refuses calls: the reason, and the last failures on a line each
	why     string
	limiter report.Limiter
	breaker *report.Breaker // nil for sources of other packages
	rule    *report.Rule    // of an alert

	notifier *report.Notifier
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
		e.busiest, e.limiter = x.recorded[s].busiest, x.recorded[s].limiter
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
