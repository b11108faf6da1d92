package alert

import (
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// monitorSeries are the figures of a monitor, in the order of its rules and notifiers.
type monitorSeries struct {
	rules     []*ruleSeries
	notifiers []*notifierSeries
}

type ruleSeries struct {
	watch       *watch
	state       [stages]*stat.Series
	transitions [stages]*stat.Series
	evaluations [faults]*stat.Series
	value, last *stat.Series
	took        *stat.Series
}

type notifierSeries struct {
	outbox                                            *outbox
	delivered, superseded, postponed, dropped         *stat.Series
	failed                                            [len(failures)]*stat.Series
	attempts, pending, pendingLimit, lastSuccessStamp *stat.Series
	took                                              *stat.Series
}

func newMonitorSeries(watches []*watch, outboxes []*outbox) *monitorSeries {
	m := &monitorSeries{}
	for _, w := range watches {
		m.rules = append(m.rules, newRuleSeries(w))
	}
	for _, o := range outboxes {
		m.notifiers = append(m.notifiers, newNotifierSeries(o))
	}
	return m
}

func newRuleSeries(w *watch) *ruleSeries {
	name, severity := w.rule.Name, w.rule.Severity
	s := &ruleSeries{
		watch: w,
		value: instrument.AlertValue.Series(name, severity),
		last:  instrument.AlertLastEvaluation.Series(name, severity),
		took:  instrument.AlertEvaluationDuration.Series(name, severity),
	}
	for state := range stages {
		s.state[state] = instrument.AlertState.Series(name, severity, state.String())
		s.transitions[state] = instrument.AlertTransitions.Series(name, severity, state.String())
	}
	for f := range faults {
		s.evaluations[f] = instrument.AlertEvaluations.Series(name, severity, f.String())
	}
	return s
}

func newNotifierSeries(o *outbox) *notifierSeries {
	name := o.notifier.Name()
	s := &notifierSeries{
		outbox:           o,
		delivered:        instrument.NotifierNotifications.Series(name, "delivered", ""),
		superseded:       instrument.NotifierNotifications.Series(name, "superseded", ""),
		postponed:        instrument.NotifierNotifications.Series(name, "refused", ""),
		dropped:          instrument.NotifierNotifications.Series(name, "dropped", ""),
		attempts:         instrument.NotifierAttempts.Series(name),
		pending:          instrument.NotifierPending.Series(name),
		pendingLimit:     instrument.NotifierPendingLimit.Series(name),
		lastSuccessStamp: instrument.NotifierLastSuccess.Series(name),
		took:             instrument.NotifierDeliveryDuration.Series(name),
	}
	for i, f := range failures {
		s.failed[i] = instrument.NotifierNotifications.Series(name, "failed", string(f))
	}
	return s
}

// Observe yields the figures of the rules and of the notifiers. A rule over [Each]
// yields how many of its alerts are in each state, and the worst of their values.
//
// A notification that failed is tried again, and so counts as failed as often as it
// did. Refused are those that the receiver does not want, maybe only for now: they wait for
// 5 minutes, or for a repeat if that is less, and are pending meanwhile. Dropped are those that
// were given up: resolved long before they could be told of, or failed for ever.
func (m *Monitor) Observe(yield func(s *stat.Series, value float64) bool) {
	for _, s := range m.series.rules {
		if !s.observe(yield) {
			return
		}
	}
	for _, s := range m.series.notifiers {
		if !s.observe(yield) {
			return
		}
	}
}

// Histograms yields how long evaluations took, by rule, and attempts at delivery, by
// notifier. It takes no lock.
func (m *Monitor) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for _, s := range m.series.rules {
		took := window.Latency(s.watch.took.Snapshot())
		if !yield(s.took, took.Histogram()) {
			return
		}
	}
	for _, s := range m.series.notifiers {
		took := window.Latency(s.outbox.took.Snapshot())
		if !yield(s.took, took.Histogram()) {
			return
		}
	}
}

// observe reports whether the reader wants more.
func (s *ruleSeries) observe(yield func(*stat.Series, float64) bool) bool {
	f := s.watch.figures.Load()
	for i := range s.state {
		if !yield(s.state[i], float64(f.states[i])) || !yield(s.transitions[i], float64(f.transitions[i])) {
			return false
		}
	}
	for i, n := range f.evaluations {
		if !yield(s.evaluations[i], float64(n)) {
			return false
		}
	}
	if f.valued && !yield(s.value, f.value) {
		return false
	}
	return f.at.IsZero() || yield(s.last, float64(f.at.UnixMilli())/1000)
}

// observe reports whether the reader wants more.
func (s *notifierSeries) observe(yield func(*stat.Series, float64) bool) bool {
	f := s.outbox.figures.Load()
	for i, n := range f.failed {
		if !yield(s.failed[i], float64(n)) {
			return false
		}
	}
	return yield(s.delivered, float64(f.delivered)) &&
		yield(s.superseded, float64(f.superseded)) &&
		yield(s.postponed, float64(f.postponed)) &&
		yield(s.dropped, float64(f.dropped)) &&
		yield(s.attempts, float64(f.attempts)) &&
		yield(s.pending, float64(f.owed)) &&
		yield(s.pendingLimit, float64(f.alerts)) &&
		(f.lastSuccess.IsZero() || yield(s.lastSuccessStamp, float64(f.lastSuccess.UnixMilli())/1000))
}
