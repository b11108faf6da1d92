package alert

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Observe yields the metrics of the rules and of the notifiers. A rule over [Each] yields how many
// of its alerts are in each state, and the worst of their values.
//
// Notifications have an outcome. A failed attempt is repeated, and each failure counts. A refused
// notification was not accepted by the receiver, maybe only for now. It stays pending and is tried
// again after 5 minutes, or after Repeat if that is less. A dropped notification is given up,
// because it would fail again or because its alert resolved long before it could be delivered. A
// silenced notification is held back until no [Silence] matches its alert.
func (m *Monitor) Observe(yield func(s *stat.Series, value float64) bool) {
	for _, r := range m.setup.Load().series().rules {
		if !yieldAll(r.values, r.evaluator.published.Load(), yield) {
			return
		}
	}
	for _, n := range m.setup.Load().series().notifiers {
		if !yieldAll(n.values, n.deliverer.published.Load(), yield) {
			return
		}
	}
}

// Histograms yields the durations of the evaluations per rule, and of the delivery attempts per
// notifier. It takes no lock.
func (m *Monitor) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	for _, r := range m.setup.Load().series().rules {
		durations := window.Latency(r.evaluator.durations.Snapshot())
		if !yield(r.durations, durations.Histogram()) {
			return
		}
	}
	for _, n := range m.setup.Load().series().notifiers {
		durations := window.Latency(n.deliverer.durations.Snapshot())
		if !yield(n.durations, durations.Histogram()) {
			return
		}
	}
}

// monitorSeries holds the metrics of a monitor, in the order of its rules and notifiers.
type monitorSeries struct {
	rules     []ruleSeries
	notifiers []notifierSeries
}

type ruleSeries struct {
	evaluator *evaluator

	name, severity string // of the rule
	values         []valueOf[*ruleStats]
	durations      *stat.Series
}

type notifierSeries struct {
	deliverer *deliverer
	values    []valueOf[*deliveryStats]
	durations *stat.Series
}

// valueOf is a series, and the function that reads its value from statistics S. The series has no
// value if ok is false.
type valueOf[S any] struct {
	series *stat.Series
	read   func(S) (value float64, ok bool)
}

func yieldAll[S any](values []valueOf[S], stats S, yield func(*stat.Series, float64) bool) bool {
	for _, v := range values {
		if value, ok := v.read(stats); ok && !yield(v.series, value) {
			return false
		}
	}
	return true
}

// newMonitorSeries returns a function that returns the metrics, and makes them when it is first
// called.
func newMonitorSeries(evaluators []*evaluator, deliverers []*deliverer) func() *monitorSeries {
	m := &monitorSeries{rules: make([]ruleSeries, len(evaluators))}
	for i, e := range evaluators {
		m.rules[i] = ruleSeries{evaluator: e, name: e.rule.Name, severity: e.rule.Severity}
	}
	return sync.OnceValue(func() *monitorSeries {
		for i := range m.rules {
			m.rules[i].make()
		}
		for _, d := range deliverers {
			m.notifiers = append(m.notifiers, newNotifierSeries(d))
		}
		return m
	})
}

func (r *ruleSeries) make() {
	r.durations = instrument.AlertEvaluationDuration.Series(r.name, r.severity)
	add := func(i *stat.Instrument, attr []string, read func(*ruleStats) (float64, bool)) {
		r.values = append(r.values, valueOf[*ruleStats]{i.Series(append([]string{r.name, r.severity}, attr...)...), read})
	}
	for p := range phases {
		attr := []string{p.String()}
		add(instrument.AlertState, attr, func(s *ruleStats) (float64, bool) { return float64(s.alerts[p]), true })
		add(instrument.AlertTransitions, attr, func(s *ruleStats) (float64, bool) { return float64(s.transitions[p]), true })
	}
	for f := range faults {
		add(instrument.AlertEvaluations, []string{f.String()}, func(s *ruleStats) (float64, bool) { return float64(s.evaluations[f]), true })
	}
	for why := noValue; why < missings; why++ {
		add(instrument.AlertNoData, []string{why.String()}, func(s *ruleStats) (float64, bool) { return float64(s.missing[why]), true })
	}
	add(instrument.AlertValue, nil, func(s *ruleStats) (float64, bool) { return s.value, s.hasValue })
	add(instrument.AlertLastEvaluation, nil, func(s *ruleStats) (float64, bool) { return unixSeconds(s.at) })
}

func newNotifierSeries(d *deliverer) notifierSeries {
	name := d.name
	n := notifierSeries{deliverer: d, durations: instrument.NotifierDeliveryDuration.Series(name)}
	add := func(series *stat.Series, read func(*deliveryStats) (float64, bool)) {
		n.values = append(n.values, valueOf[*deliveryStats]{series, read})
	}
	count := func(series *stat.Series, read func(*deliveryStats) int64) {
		add(series, func(s *deliveryStats) (float64, bool) { return float64(read(s)), true })
	}
	notifications := instrument.NotifierNotifications
	for i, kind := range errorKinds {
		count(notifications.Series(name, "failed", kind), func(s *deliveryStats) int64 { return s.failed[i] })
	}
	count(notifications.Series(name, "delivered", ""), func(s *deliveryStats) int64 { return s.delivered })
	count(notifications.Series(name, "superseded", ""), func(s *deliveryStats) int64 { return s.superseded })
	count(notifications.Series(name, "refused", ""), func(s *deliveryStats) int64 { return s.refusals })
	count(notifications.Series(name, "dropped", ""), func(s *deliveryStats) int64 { return s.dropped })
	count(notifications.Series(name, "silenced", ""), func(s *deliveryStats) int64 { return s.silenced })
	count(instrument.NotifierAttempts.Series(name), func(s *deliveryStats) int64 { return s.attempts })
	count(instrument.NotifierPending.Series(name), func(s *deliveryStats) int64 { return int64(s.pending) })
	count(instrument.NotifierPendingLimit.Series(name), func(s *deliveryStats) int64 { return int64(s.alerts) })
	add(instrument.NotifierLastSuccess.Series(name), func(s *deliveryStats) (float64, bool) { return unixSeconds(s.lastSuccess) })
	return n
}

// unixSeconds returns t as a Unix time in seconds; ok is false for the zero time.
func unixSeconds(t time.Time) (seconds float64, ok bool) {
	return float64(t.UnixMilli()) / 1000, !t.IsZero()
}

// counted returns a value for the counters of a source that isCounted selects: the increase of
// these counters in the last span. The value is too low until a whole span has passed, so a Below
// condition has no data until then.
func counted(name string, of stat.Source, span time.Duration, isCounted func(*stat.Series) bool) Value {
	v := Value{name: name, high: math.Inf(1)}
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	v.errs = append(v.errs, spanErrors(span)...)
	v.id = newValueID(v.name, of, 0)
	v.start = func() sampler {
		views := newViews(&seriesCounter{source: of, isCounted: isCounted}, span)
		return sampleOne(v.name, func(t time.Time) measurement {
			now := views.sample(t)[0]
			return measurement{Value: float64(now.CountsAt(t).Refused), OK: true, partial: now.coverage(t) < 1}
		})
	}
	return v
}

// seriesCounter adds up counters of a source. It sums the increase of each series, because the sum
// over a group falls when the group evicts a key.
type seriesCounter struct {
	source    stat.Source
	isCounted func(*stat.Series) bool
	last      map[string]float64 // by series
	total     int64
}

// maxCounter is the largest count that is used. Larger values are ignored, so that sums do not
// overflow.
const maxCounter = 1 << 53

// Totals returns the sum in the field Refused. The other fields are 0.
func (c *seriesCounter) Totals() window.Totals {
	now := make(map[string]float64, len(c.last))
	for s, value := range c.source.Observe {
		if !c.isCounted(s) {
			continue
		}
		id := s.ID()
		if !(value >= 0 && value <= maxCounter) { // also false for NaN
			value = c.last[id]
		}
		now[id] += value
	}
	for id, value := range now {
		old := c.last[id]
		if value < old { // the series was reset
			old = 0
		}
		c.total += int64(value - old)
	}
	c.last = now
	return window.Totals{Refused: c.total}
}

// transitionStates are the states that the metrics of breakers and monitors name.
var transitionStates = []string{
	"closed", "open", "half_open", "recovering", "forced_open", "forced_closed", "disabled", "shadow", "pending", "firing", "inactive",
}

// Transitions is how often a breaker, or all breakers of a gate or a group together, entered a
// state in the last span. It is read from the metrics that the source exports. For a [Monitor],
// Transitions is how often alerts became pending, firing or inactive.
//
// A flapping breaker is one that closes again and again. In a long outage a breaker does not close,
// however often it probes the service and opens again. So count the state "closed":
//
//	alert.Rule{
//		Name:  "payments flaps",
//		Value: alert.Transitions(payments, "closed", 15*time.Minute),
//		When:  alert.Above(2),
//	}
//
// For one alert per member of a group, use [Each] with the members. Until the monitor has run for a
// whole span the number is too low, so a Below condition has no data until then.
func Transitions(of stat.Source, state string, span time.Duration) Value {
	v := counted(fmt.Sprintf("number of transitions to %s over %s", state, shortText(span)), of, span, func(s *stat.Series) bool {
		at := slices.Index(s.Instrument.Attrs, transitionAttribute[s.Instrument.Name])
		return at >= 0 && at < len(s.Values) && s.Values[at] == state
	})
	if !slices.Contains(transitionStates, state) {
		v.errs = append(v.errs, fmt.Errorf("the state is %.60q, must be one of %q", state, transitionStates))
	}
	return v
}

// transitionAttribute is the attribute with the state, by the name of the instrument.
var transitionAttribute = map[string]string{
	instrument.BreakerTransitions.Name: "weir.breaker.state",
	instrument.AlertTransitions.Name:   "weir.alert.state",
}
