package breaker

import (
	"slices"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// summableSeries has the series of a breaker, and the order of those that can be summed over
// breakers.
type summableSeries struct {
	*series
	order []*stat.Series // in the order of Breaker.observe: the series of the states first
}

func newSummableSeries(name, key string, began time.Time) summableSeries {
	s := newSeries(name, key, began)
	l := summableSeries{series: s}
	for i := range stateCount {
		l.order = append(l.order, s.state[i], s.transitions[i], s.time[i])
	}
	l.order = append(l.order, s.calls[:]...)
	l.order = append(l.order, s.slow, s.late, s.abandoned, s.dropped, s.active)
	return l
}

// emptySum returns an empty sum.
func (l *summableSeries) emptySum() sum { return sum{values: make([]float64, len(l.order))} }

// add adds the metrics of b to the sum, except durations.
func (l *summableSeries) add(to *sum, b *Breaker) {
	l.eachMetric(b, func(_ *stat.Series, i int, v float64) bool {
		if i >= 0 {
			to.values[i] += v
		}
		return true
	})
}

// eachMetric calls f with each metric of b and its index in order, or -1 if it cannot be summed.
func (l *summableSeries) eachMetric(b *Breaker, f func(s *stat.Series, i int, v float64) bool) bool {
	next := 0
	return b.observe(l.series, func(s *stat.Series, v float64) bool {
		i := slices.Index(l.order[next:], s)
		if i >= 0 {
			i += next
			next = i
		}
		return f(s, i, v)
	})
}

// addLatency adds the durations of the calls of b to the sum.
func (l *summableSeries) addLatency(to *sum, b *Breaker) {
	if p := b.phase.Load(); p.hasLatency() {
		if all := b.lifetimeLatency(p); all.Count() > 0 {
			to.addLatency(all, 1)
		}
	}
}

// countersOf returns the counters of b, and 0 for metrics that are not counters.
func (l *summableSeries) countersOf(b *Breaker) sum {
	a := l.emptySum()
	l.add(&a, b)
	l.addLatency(&a, b)
	for i, s := range l.order {
		if s.Instrument.Kind != stat.Counter {
			a.values[i] = 0
		}
	}
	return a
}

// sum is a sum of the metrics of breakers.
type sum struct {
	values  []float64       // in the order of summableSeries
	latency *window.Latency // nil for no call
}

func (a *sum) durations() (l window.Latency) {
	if a.latency != nil {
		l = *a.latency
	}
	return l
}

// add adds more to the sum, or subtracts it if sign is -1.
func (a *sum) add(more sum, sign float64) {
	for i, v := range more.values {
		a.values[i] += sign * v
	}
	if more.latency != nil {
		a.addLatency(*more.latency, int64(sign))
	}
}

// addLatency adds more to the durations, or subtracts it if sign is -1.
func (a *sum) addLatency(more window.Latency, sign int64) {
	all := a.durations()
	longest := max(all.Max, more.Max)
	for i := range more.Counts {
		more.Counts[i] *= sign
	}
	more.Sum, more.Under, more.Over = more.Sum*float64(sign), more.Under*sign, more.Over*sign
	all = all.Plus(more)
	all.Max = longest
	a.latency = &all
}

// raiseCounters replaces each counter of now that is below the highest value that was shown before.
// a holds these highest values. Sums of the same times in a different order differ by rounding.
// Prometheus takes a counter that falls, even by a nanosecond, for a counter that restarted from 0.
func (a *sum) raiseCounters(now *sum, l *summableSeries) {
	for i, s := range l.order {
		if s.Instrument.Kind == stat.Counter {
			a.values[i] = max(a.values[i], now.values[i])
			now.values[i] = a.values[i]
		}
	}
	if now.latency == nil {
		return
	}
	now.latency.Sum = max(now.latency.Sum, a.durations().Sum)
	a.latency = &window.Latency{Sum: now.latency.Sum}
}
