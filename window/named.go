package window

import (
	"errors"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// Named is a window of calls with a name: a [stat.Source] for exporters. What a
// breaker or a gate counts is exported by these themselves.
type Named struct {
	name   string
	calls  *Calls
	events [4]*stat.Series // success, failure, ignored, refused

	late, ratio, size, length, coverage *stat.Series
	latency                             [3]*stat.Series
}

// NewNamed gives a window a name. It panics if c is nil.
func NewNamed(name string, c *Calls) *Named {
	if c == nil {
		panic(errors.New("window: the window to name is nil"))
	}
	n := &Named{
		name: name, calls: c, late: instrument.WindowEventsLate.Series(name), ratio: instrument.WindowErrorRatio.Series(name),
		size: instrument.WindowSize.Series(name), length: instrument.WindowLength.Series(name), coverage: instrument.WindowCoverage.Series(name),
	}
	n.late.Created = c.clock.Epoch
	for i, outcome := range [4]string{"success", "failure", "ignored", "refused"} {
		n.events[i] = instrument.WindowEvents.Series(name, outcome)
		n.events[i].Created = c.clock.Epoch
	}
	for i, q := range [3]string{"0.5", "0.9", "0.99"} {
		n.latency[i] = instrument.WindowLatency.Series(name, q)
	}
	return n
}

// Name returns the name.
func (n *Named) Name() string { return n.name }

// Calls returns the window.
func (n *Named) Calls() *Calls { return n.calls }

// Observe yields the window's figures. What means nothing yet is left out: the ratio
// of no calls, their latency, and the length of a window that has none. It takes a
// lock only where the window is over the last so many calls.
func (n *Named) Observe(yield func(*stat.Series, float64) bool) {
	at := n.calls.clock.SeenNow()
	now, total := n.calls.since(at, Totals{}), n.calls.Totals()
	for i, v := range [4]int64{total.Successes, total.Failures, total.Ignored, total.Refused} {
		if !yield(n.events[i], float64(v)) {
			return
		}
	}
	if !yield(n.late, float64(n.calls.Late())) || !yield(n.size, float64(now.Calls())) {
		return
	}
	if now.Calls() > 0 && !yield(n.ratio, now.FailureRate()) {
		return
	}
	shape := &n.calls.shape
	if shape.Last > 0 {
		yield(n.coverage, min(float64(now.Calls())/float64(shape.Last), 1))
		return
	}
	if yield(n.length, shape.Span.Seconds()) &&
		yield(n.coverage, min(max(at.Seconds(), 0)/shape.Span.Seconds(), 1)) && shape.Latency {
		n.observeLatency(at, yield)
	}
}

func (n *Named) observeLatency(at time.Duration, yield func(*stat.Series, float64) bool) {
	took := Latency(n.calls.tally.Latency(at))
	if took.Count() == 0 {
		return
	}
	for i, q := range [3]float64{0.5, 0.9, 0.99} {
		if !yield(n.latency[i], took.Quantile(q).Seconds()) {
			return
		}
	}
}
