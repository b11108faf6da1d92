package window

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// callsMetrics holds the series of a window with a name.
type callsMetrics struct {
	config    CallsConfig
	lateCalls atomic.Int64 // calls with a time before the newest bucket
	began     atomic.Int64 // when the window was last emptied, or 0

	events                              [4]*stat.Series // success, failure, ignored, refused
	late, ratio, size, length, coverage *stat.Series
	quantiles                           [len(quantiles)]*stat.Series
}

// quantiles are the quantiles of the latency that are shown.
var quantiles = [...]struct {
	q    float64
	name string
}{{0.5, "0.5"}, {0.9, "0.9"}, {0.99, "0.99"}}

// newCallsMetrics returns nil if the window has no name.
func newCallsMetrics(c CallsConfig, created time.Time) *callsMetrics {
	if c.Name == "" {
		return nil
	}
	m := &callsMetrics{
		config: c, late: instrument.WindowEventsLate.Series(c.Name), ratio: instrument.WindowErrorRatio.Series(c.Name),
		size: instrument.WindowSize.Series(c.Name), length: instrument.WindowLength.Series(c.Name), coverage: instrument.WindowCoverage.Series(c.Name),
	}
	m.late.Created = created
	for i, outcome := range [...]string{"success", "failure", "ignored", "refused"} {
		m.events[i] = instrument.WindowEvents.Series(c.Name, outcome)
		m.events[i].Created = created
	}
	for i, q := range quantiles {
		m.quantiles[i] = instrument.WindowLatency.Series(c.Name, q.name)
	}
	return m
}

// Name returns CallsConfig.Name.
func (c *Calls) Name() string {
	if c.metrics == nil {
		return ""
	}
	return c.metrics.config.Name
}

// Observe yields the metrics of a window with a name, for exporters: see [stat.Source]. It leaves
// out values that do not exist: the failure rate and the latency of no calls, and the length in
// time of a window over the last calls. It takes a lock only for a window over the last calls.
func (c *Calls) Observe(yield func(*stat.Series, float64) bool) {
	m := c.metrics
	if m == nil {
		return
	}
	at := c.peekNow()
	now, total := c.counts(at), c.Totals()
	for i, n := range [...]int64{total.Successes, total.Failures, total.Ignored, total.Refused} {
		if !yield(m.events[i], float64(n)) {
			return
		}
	}
	if !yield(m.late, float64(m.lateCalls.Load())) || !yield(m.size, float64(now.Calls())) {
		return
	}
	if now.Calls() > 0 && !yield(m.ratio, now.FailureRate()) {
		return
	}
	if m.config.Last > 0 {
		yield(m.coverage, min(float64(now.Calls())/float64(m.config.Last), 1))
		return
	}
	span := m.config.Span.Seconds()
	if yield(m.length, span) && yield(m.coverage, min(max((at-time.Duration(m.began.Load())).Seconds(), 0)/span, 1)) && m.config.Latency {
		c.observeLatency(at, yield)
	}
}

func (c *Calls) observeLatency(at time.Duration, yield func(*stat.Series, float64) bool) {
	took := Latency(c.tally.Latency(at))
	if took.Count() == 0 {
		return
	}
	for i, q := range quantiles {
		if !yield(c.metrics.quantiles[i], took.Quantile(q.q).Seconds()) {
			return
		}
	}
}
