package breaker

import (
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Stats are what a breaker has been through, as plain numbers.
type Stats struct {
	State     State
	Since     time.Time // when the state began
	Counts    window.Counts
	Totals    window.Totals
	Late      int64 // results of calls that an earlier state had let through
	Abandoned int64 // probes that were unheard of for ProbeTimeout
	Dropped   int64 // changes that no callback saw: too many waited, or it panicked
}

// Stats returns what the breaker has been through so far.
func (b *Breaker) Stats() Stats {
	at := time.Since(b.epoch)
	p := b.phase.Load()
	since := p.since
	if p.at(at) != p.state {
		since = p.until
	}
	return Stats{
		State: p.at(at), Since: b.epoch.Add(since), Counts: b.counts(at), Totals: b.Totals(),
		Late: b.late.Load(), Abandoned: b.abandoned.Load(), Dropped: b.changes.dropped.Load(),
	}
}

// series are the lines that a breaker shows, made when it is first observed.
type series struct {
	state, transitions, time       [states]*stat.Series
	calls                          [4]*stat.Series // by outcome: success, failure, ignored, refused
	window                         [4]*stat.Series
	slow, late, abandoned, dropped *stat.Series
	failureRatio                   *stat.Series
	thresholdRatio, thresholdCalls *stat.Series
}

// outcomes are the values of the outcome attribute, in the order of figures.
var outcomes = [4]string{"success", "failure", "ignored", "refused"}

func figures(c window.Counts) [4]int64 {
	return [4]int64{c.Successes, c.Failures, c.Ignored, c.Refused}
}

func newSeries(name string) *series {
	s := &series{
		slow: stat.BreakerSlowCalls.Series(name), late: stat.BreakerLateResults.Series(name),
		abandoned: stat.BreakerAbandonedProbes.Series(name), dropped: stat.BreakerDroppedChanges.Series(name),
		failureRatio:   stat.BreakerWindowFailureRatio.Series(name),
		thresholdRatio: stat.BreakerThresholdFailureRatio.Series(name),
		thresholdCalls: stat.BreakerThresholdMinCalls.Series(name),
	}
	for state := range states {
		s.state[state] = stat.BreakerState.Series(name, state.String())
		s.transitions[state] = stat.BreakerTransitions.Series(name, state.String())
		s.time[state] = stat.BreakerStateTime.Series(name, state.String())
	}
	for i, o := range outcomes {
		s.calls[i] = stat.BreakerCalls.Series(name, o)
		s.window[i] = stat.BreakerWindowCalls.Series(name, o)
	}
	return s
}

// Observe yields the breaker's figures. It takes no lock.
func (b *Breaker) Observe(yield func(*stat.Series, float64)) {
	b.series.Do(func() { b.shown = newSeries(b.name) })
	s, at := b.shown, time.Since(b.epoch)
	b.observeStates(s, at, yield)

	counts := b.counts(at)
	total, now := figures(b.Totals()), figures(counts)
	for i := range outcomes {
		yield(s.calls[i], float64(total[i]))
		yield(s.window[i], float64(now[i]))
	}
	yield(s.slow, float64(b.Totals().Slow))
	yield(s.late, float64(b.late.Load()))
	yield(s.abandoned, float64(b.abandoned.Load()))
	yield(s.dropped, float64(b.changes.dropped.Load()))
	if counts.Calls() >= b.minCalls {
		yield(s.failureRatio, counts.FailureRate())
	}
	if b.failureRate != never {
		yield(s.thresholdRatio, b.config.FailureRate)
	}
	yield(s.thresholdCalls, float64(b.minCalls))
}

func (b *Breaker) observeStates(s *series, at time.Duration, yield func(*stat.Series, float64)) {
	p := b.phase.Load()
	now, spent, entered, since := p.at(at), p.spent, p.entered, p.since
	if now != p.state { // the cooldown is over, and nobody has called since
		spent[p.state] += p.until - since
		entered[now]++
		since = p.until
	}
	spent[now] += max(at-since, 0)
	for state := range states {
		is := 0.0
		if state == now {
			is = 1
		}
		yield(s.state[state], is)
		yield(s.transitions[state], float64(entered[state]))
		yield(s.time[state], spent[state].Seconds())
	}
}
