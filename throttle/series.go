package throttle

import (
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// series are the series of one throttle.
type series struct {
	calls, window [4]*stat.Series // by outcome
	failureRatio  *stat.Series
	refusalRatio  *stat.Series
	minCalls      *stat.Series
}

// outcomes are the values of the outcome attribute, in the order of byOutcome.
var outcomes = [4]string{"success", "failure", "ignored", "refused"}

func byOutcome(c window.Counts) [4]int64 {
	return [4]int64{c.Successes, c.Failures, c.Ignored, c.Refused}
}

// newSeries returns the series of a throttle that was made at the given time.
func newSeries(name string, began time.Time) *series {
	of := func(i *stat.Instrument, values ...string) *stat.Series {
		all := make([]string, len(i.Attrs)) // attributes that only breakers have are ""
		copy(all[copy(all, []string{name}):], values)
		s := i.Series(all...)
		s.Created = began
		return s
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

// Observe yields the metrics of the throttle, see [stat.Source]. They have the names of the metrics
// of breakers, so the name of the throttle must differ from the names of the breakers in the
// process. Observe takes no lock.
func (t *Throttle) Observe(yield func(*stat.Series, float64) bool) {
	t.makeSeries.Do(func() { t.series = newSeries(t.name, t.clock.Epoch) })
	s, at, now := t.series, t.peekNow(), t.setting.Load()
	counts := now.counts(at)
	total, recent := byOutcome(window.Counts(t.Totals())), byOutcome(counts)
	for i := range outcomes {
		if !yield(s.calls[i], float64(total[i])) || !yield(s.window[i], float64(recent[i])) {
			return
		}
	}
	if counts.Calls() >= int64(now.config.MinCalls) && !yield(s.failureRatio, counts.FailureRate()) {
		return
	}
	_ = yield(s.refusalRatio, now.refusalRate(at)) && yield(s.minCalls, float64(now.config.MinCalls))
}
