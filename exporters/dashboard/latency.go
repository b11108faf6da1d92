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

// latencyRecorder is a source whose latency is read together with its metrics. That happens within
// Observe, where the read.Set recovers, counts and logs a panic. Two of them are == if their
// sources are.
type latencyRecorder struct {
	source    latencySource
	latencies *latencies
}

// Observe yields the metrics of the source and records its quantiles.
func (c latencyRecorder) Observe(yield func(*stat.Series, float64) bool) {
	// A gate's entry has the name of its breaker, which may differ from the gate's. A window has no
	// entry with latencies.
	name, found := "", false
	for s, value := range c.source.Observe {
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
	if l := c.source.Latency(); l.Count() > 0 {
		c.latencies.record(name, quantiles{p50: rounded(l.Quantile(0.5).Seconds()), p99: rounded(l.Quantile(0.99).Seconds())})
	}
}

// quantiles are the latencies of one source in seconds.
type quantiles struct{ p50, p99 number }

// latencies holds the quantiles of the current sampling by name. Nothing is recorded while a source
// is read because it is being added.
type latencies struct {
	mu       sync.Mutex
	recorded map[string]quantiles // nil between samplings
}

// wrap wraps the sources that have latencies.
func (c *latencies) wrap(sources []stat.Source) []stat.Source {
	wrapped := make([]stat.Source, len(sources))
	for n, s := range sources {
		wrapped[n] = s
		if t, ok := s.(latencySource); ok {
			wrapped[n] = latencyRecorder{source: t, latencies: c}
		}
	}
	return wrapped
}

func (c *latencies) record(name string, q quantiles) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recorded != nil {
		c.recorded[name] = q
	}
}

func (c *latencies) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorded = map[string]quantiles{}
}

func (c *latencies) finish() map[string]quantiles {
	c.mu.Lock()
	defer c.mu.Unlock()
	noted := c.recorded
	c.recorded = nil
	return noted
}
