package window

import (
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// shownCalls is what a window with a name keeps for exporters.
type shownCalls struct {
	shape CallsConfig

	lateCalls atomic.Int64 // with a time before the newest bucket, and counted into that one

	events [4]*stat.Series // success, failure, ignored, refused

	late, ratio, size, length, coverage *stat.Series
	latency                             [3]*stat.Series
}

// newShownCalls returns the series of a window, or nil if it has no name.
func newShownCalls(shape CallsConfig, began time.Time) *shownCalls {
	name := shape.Name
	if name == "" {
		return nil
	}
	s := &shownCalls{
		shape: shape, late: instrument.WindowEventsLate.Series(name), ratio: instrument.WindowErrorRatio.Series(name),
		size: instrument.WindowSize.Series(name), length: instrument.WindowLength.Series(name), coverage: instrument.WindowCoverage.Series(name),
	}
	s.late.Created = began
	for i, outcome := range [4]string{"success", "failure", "ignored", "refused"} {
		s.events[i] = instrument.WindowEvents.Series(name, outcome)
		s.events[i].Created = began
	}
	for i, q := range [3]string{"0.5", "0.9", "0.99"} {
		s.latency[i] = instrument.WindowLatency.Series(name, q)
	}
	return s
}

// Name returns CallsConfig.Name.
func (c *Calls) Name() string {
	if c.shown == nil {
		return ""
	}
	return c.shown.shape.Name
}

// Observe yields the figures of a window with a name, for exporters: see [stat.Source]. What means
// nothing yet is left out: the ratio of no calls, their latency, and the length of a window that
// has none. It takes a lock only where the window is over the last so many calls.
func (c *Calls) Observe(yield func(*stat.Series, float64) bool) {
	s := c.shown
	if s == nil {
		return
	}
	at := c.clock.PeekNow()
	now, total := c.counts(at), c.Totals()
	for i, v := range [4]int64{total.Successes, total.Failures, total.Ignored, total.Refused} {
		if !yield(s.events[i], float64(v)) {
			return
		}
	}
	if !yield(s.late, float64(s.lateCalls.Load())) || !yield(s.size, float64(now.Calls())) {
		return
	}
	if now.Calls() > 0 && !yield(s.ratio, now.FailureRate()) {
		return
	}
	if s.shape.Last > 0 {
		yield(s.coverage, min(float64(now.Calls())/float64(s.shape.Last), 1))
		return
	}
	if yield(s.length, s.shape.Span.Seconds()) &&
		yield(s.coverage, min(max(at.Seconds(), 0)/s.shape.Span.Seconds(), 1)) && s.shape.Latency {
		c.observeLatency(at, yield)
	}
}

func (c *Calls) observeLatency(at time.Duration, yield func(*stat.Series, float64) bool) {
	took := Latency(c.tally.Latency(at))
	if took.Count() == 0 {
		return
	}
	for i, q := range [3]float64{0.5, 0.9, 0.99} {
		if !yield(c.shown.latency[i], took.Quantile(q).Seconds()) {
			return
		}
	}
}
