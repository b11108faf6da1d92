package throttle

import (
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// series are the lines that a throttle shows, made when it is first observed.
type series struct {
	calls, window [4]*stat.Series // by outcome
	failureRatio  *stat.Series
	refusalRatio  *stat.Series
	minCalls      *stat.Series
}

// outcomes are the values of the outcome attribute, in the order of figures.
var outcomes = [4]string{"success", "failure", "ignored", "refused"}

func figures(c window.Counts) [4]int64 {
	return [4]int64{c.Successes, c.Failures, c.Ignored, c.Refused}
}

// newSeries makes them as of when the throttle began.
func newSeries(name string, began time.Time) *series {
	of := func(i *stat.Instrument, values ...string) *stat.Series {
		all := make([]string, len(i.Attrs)) // "" for what only breakers have
		copy(all[copy(all, []string{name}):], values)
		line := i.Series(all...)
		line.Created = began
		return line
	}
	s := &series{
		failureRatio: of(instrument.BreakerWindowFailureRatio),
		refusalRatio: of(instrument.BreakerRefusalRatio),
		minCalls:     of(instrument.BreakerThresholdMinCalls),
	}
	for i, o := range outcomes {
		s.calls[i] = of(instrument.BreakerCalls, o)
		s.window[i] = of(instrument.BreakerWindowCalls, o)
	}
	return s
}

// Observe yields the throttle's figures, under the metric names of breakers as far as they fit: see
// [stat.Source]. The throttle's name must not be that of a breaker in the same process. Observe
// takes no lock.
func (t *Throttle) Observe(yield func(*stat.Series, float64) bool) {
	t.series.Do(func() { t.shown = newSeries(t.name, t.clock.Epoch) })
	s, at := t.shown, t.clock.PeekNow()
	counts := t.counts(at)
	total, now := figures(window.Counts(t.Totals())), figures(counts)
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
