package dashboard

import (
	"sync"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// timed is a source that knows how long its calls took, as breakers and gates do.
type timed interface {
	stat.Source
	Latency() window.Latency
}

// clocked is a source that is asked for its quantiles whenever its figures are
// read. It does so inside Observe, so that the set which reads it isolates, counts
// and logs a panic in either. Two of them are == if their sources are.
type clocked struct {
	timed  timed
	clocks *clocks
}

// Observe yields the figures of the source and notes its quantiles.
func (c clocked) Observe(yield func(*stat.Series, float64) bool) {
	// The line of a gate has the name of its breaker, which may be another than the gate's. A window of
	// calls has no such line.
	name, found := "", false
	for s, value := range c.timed.Observe {
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
	if l := c.timed.Latency(); l.Count() > 0 {
		c.clocks.note(name, quantiles{p50: some(l.Quantile(0.5).Seconds()), p99: some(l.Quantile(0.99).Seconds())})
	}
}

// quantiles of the calls of one source, in seconds.
type quantiles struct{ p50, p99 number }

// clocks has the quantiles noted for the present sample, by name. A source that is read
// in order to be added notes nothing.
type clocks struct {
	mu    sync.Mutex
	noted map[string]quantiles // nil between samples
}

// wrap makes those of the sources that are timed tell their quantiles.
func (c *clocks) wrap(sources []stat.Source) []stat.Source {
	wrapped := make([]stat.Source, len(sources))
	for n, s := range sources {
		wrapped[n] = s
		if t, ok := s.(timed); ok {
			wrapped[n] = clocked{timed: t, clocks: c}
		}
	}
	return wrapped
}

func (c *clocks) note(name string, q quantiles) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noted != nil {
		c.noted[name] = q
	}
}

func (c *clocks) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noted = map[string]quantiles{}
}

func (c *clocks) take() map[string]quantiles {
	c.mu.Lock()
	defer c.mu.Unlock()
	noted := c.noted
	c.noted = nil
	return noted
}
