package dashboard

import (
	"sync"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// latencySource is a source with latencies, such as a breaker or a gate.
type latencySource interface {
	stat.Source
	Latency() window.Latency
}

// explainer is a source that says why it refuses calls, such as a breaker or a gate.
type explainer interface {
	Explain() string
}

// extraReader is a source from which more is read together with its metrics. That happens within
// Observe, where the read.Set recovers, counts and logs a panic. Two of them are == if their sources
// are.
type extraReader struct {
	source latencySource
	extras *extras
}

// Observe yields the metrics of the source and records its extra.
func (r extraReader) Observe(yield func(*stat.Series, float64) bool) {
	// A gate's entry has the name of its breaker, which may differ from the gate's. A window has no
	// entry with extras.
	name, found := "", false
	for s, value := range r.source.Observe {
		if s != nil && s.Instrument == instrument.BreakerState {
			name, found = s.Values[0], true
		}
		if !yield(s, value) {
			return
		}
	}
	if !found {
		return
	}
	var e extra
	if l := r.source.Latency(); l.Count() > 0 {
		e.p50, e.p99 = rounded(l.Quantile(0.5).Seconds()), rounded(l.Quantile(0.99).Seconds())
	}
	if x, ok := r.source.(explainer); ok {
		e.why = x.Explain()
	}
	if e != (extra{}) {
		r.extras.record(name, e)
	}
}

// extra is what the page shows of one source beside its metrics.
type extra struct {
	p50, p99 number // latencies in seconds
	why      string // why it refuses calls: the reason, and the last failures on a line each
}

// extras holds the extras of the current sampling by name. Nothing is recorded while a source is read
// because it is being added.
type extras struct {
	mu       sync.Mutex
	recorded map[string]extra // nil between samplings
}

// wrap wraps the sources that have extras.
func (x *extras) wrap(sources []stat.Source) []stat.Source {
	wrapped := make([]stat.Source, len(sources))
	for n, s := range sources {
		wrapped[n] = s
		if t, ok := s.(latencySource); ok {
			wrapped[n] = extraReader{source: t, extras: x}
		}
	}
	return wrapped
}

func (x *extras) record(name string, e extra) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.recorded != nil {
		x.recorded[name] = e
	}
}

func (x *extras) start() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recorded = map[string]extra{}
}

func (x *extras) finish() map[string]extra {
	x.mu.Lock()
	defer x.mu.Unlock()
	recorded := x.recorded
	x.recorded = nil
	return recorded
}
