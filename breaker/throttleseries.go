package breaker

import (
	"time"

	"github.com/weir-go/weir/stat"
)

// throttleSeries are the lines that a throttle shows, made when it is first observed.
type throttleSeries struct {
	calls, window [4]*stat.Series // in the order of outcomes
	failureRatio  *stat.Series
	refusalRatio  *stat.Series
	minCalls      *stat.Series
}

// newThrottleSeries makes them as of when the throttle began.
func newThrottleSeries(name string, began time.Time) *throttleSeries {
	of := func(i *stat.Instrument, values ...string) *stat.Series {
		all := make([]string, len(i.Attrs)) // "" for what only breakers have
		copy(all[copy(all, []string{name}):], values)
		line := i.Series(all...)
		line.Created = began
		return line
	}
	s := &throttleSeries{
		failureRatio: of(stat.BreakerWindowFailureRatio),
		refusalRatio: of(stat.BreakerRefusalRatio),
		minCalls:     of(stat.BreakerThresholdMinCalls),
	}
	for i, o := range outcomes {
		s.calls[i] = of(stat.BreakerCalls, o)
		s.window[i] = of(stat.BreakerWindowCalls, o)
	}
	return s
}

// Observe yields the throttle's figures, with the instruments of breakers as far as
// they fit: see [stat.Source]. Its name must not be that of a breaker beside it. It
// takes no lock.
func (t *Throttle) Observe(yield func(*stat.Series, float64) bool) {
	t.series.Do(func() { t.shown = newThrottleSeries(t.name, t.epoch) })
	s, at := t.shown, t.seenNow()
	counts := t.counts(at)
	total, now := figures(t.Totals()), figures(counts)
	for i := range outcomes {
		if !yield(s.calls[i], float64(total[i])) || !yield(s.window[i], float64(now[i])) {
			return
		}
	}
	if counts.Calls() >= int64(t.config.MinCalls) && !yield(s.failureRatio, counts.FailureRate()) {
		return
	}
	_ = yield(s.refusalRatio, t.rate(at)) && yield(s.minCalls, float64(t.config.MinCalls))
}
