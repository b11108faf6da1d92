package alert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Reconfigure replaces the config and the rules. If Run is running, it then evaluates at once. If
// an evaluation is in progress, the change waits until the evaluation ends. If several changes
// wait, only the latest is made. Silences stay.
//
// A rule with the Name of a previous rule replaces it: its alerts stay pending or firing, and the
// new conditions apply from the next evaluation on. The rule keeps its samples if its Value has the
// same source, spans and parameters. Otherwise it starts again with an empty count. The same holds
// for the members of an [Each]. Alerts with another Severity, Label or Instance are different
// alerts: a firing alert resolves with its old labels and fires with the new ones.
//
// If a rule is removed, its pending alerts end, and its firing alerts resolve and are notified. A
// new rule begins without samples.
//
// A notifier with the Name of a previous notifier replaces it: it keeps the record of what was
// delivered, and delivers the rest. An attempt in progress ends first. A new notifier receives all
// firing alerts. A removed notifier receives nothing more, and its undelivered alerts are logged.
//
// If c or a rule is invalid, Reconfigure returns the error of c.Validate and changes nothing. If c
// has another StateFile, Reconfigure also returns an error and changes nothing.
func (m *Monitor) Reconfigure(c Config, rules ...Rule) error {
	if err := c.Validate(rules...); err != nil {
		return err
	}
	if c.StateFile != m.state.path {
		return fmt.Errorf("alert: StateFile is %q and cannot become %q", m.state.path, c.StateFile)
	}
	next := newNextSetup(c, rules)
	m.mu.Lock()
	m.next = next
	wake := m.wake
	m.mu.Unlock()
	m.tryReplace()
	select {
	case wake <- struct{}{}:
	default:
	}
	return nil
}

// setup holds the rules, notifiers and workers that a monitor builds from one config. Only its
// evaluators change, during evaluations.
type setup struct {
	config     Config
	evaluators []*evaluator
	deliverers []*deliverer
	series     func() *monitorSeries
}

// nextSetup holds the parts from which a setup is built. It is made before the lock busy is taken,
// because it calls methods of the notifiers.
type nextSetup struct {
	config    Config // with its defaults
	rules     []Rule
	receivers []receiverConfig
}

// receiverConfig is a notifier, and what it says of itself.
type receiverConfig struct {
	notifier    Notifier
	name        string
	repeat      time.Duration
	ownSilences bool
}

func newNextSetup(c Config, rules []Rule) *nextSetup {
	next := &nextSetup{config: c.orDefault(), rules: slices.Clone(rules)}
	for _, n := range c.Notify {
		r := receiverConfig{notifier: n, name: n.Name()}
		if repeating, ok := n.(repeatNotifier); ok {
			r.repeat = repeating.Repeat()
		}
		if silencing, ok := n.(silencingNotifier); ok {
			r.ownSilences = silencing.OwnSilences()
		}
		next.receivers = append(next.receivers, r)
	}
	return next
}

// tryReplace replaces the setup if a next one waits. If an evaluation is in progress, the setup is
// replaced later.
func (m *Monitor) tryReplace() {
	for m.waits() && m.busy.TryLock() {
		logRemoved := m.replaceByNext()
		m.busy.Unlock()
		logRemoved()
	}
}

func (m *Monitor) waits() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next != nil
}

// replaceByNext replaces the setup if a next one waits. The caller holds the lock busy, and calls
// the result: see replaceSetup.
func (m *Monitor) replaceByNext() (logRemoved func()) {
	m.mu.Lock()
	next := m.next
	m.next = nil
	m.mu.Unlock()
	if next == nil {
		return func() {}
	}
	return m.replaceSetup(next)
}

// replaceSetup replaces the setup by a valid one. The result logs which notifiers were removed with
// undelivered alerts. It must be called without the lock busy, or during an evaluation, so that a
// handler of the logger may use the monitor.
func (m *Monitor) replaceSetup(parts *nextSetup) (logRemoved func()) {
	c := parts.config
	old, next := m.setup.Load(), &setup{config: c}
	evaluators := map[string]*evaluator{}
	for _, e := range old.evaluators {
		evaluators[e.rule.Name] = e
	}
	for _, r := range parts.rules {
		e := evaluators[r.Name]
		delete(evaluators, r.Name)
		if e == nil {
			e = newEvaluator(r, c)
		} else {
			m.retired = append(m.retired, e.reconfigure(r, c)...)
		}
		m.retired = e.restoreRetired(m.retired)
		next.evaluators = append(next.evaluators, e)
	}
	for _, e := range old.evaluators {
		if evaluators[e.rule.Name] != nil {
			m.retired = append(m.retired, e.retire()...)
		}
	}
	var removed []*deliverer
	next.deliverers, removed = deliverersOf(parts, old.deliverers, &m.state)
	next.series = newMonitorSeries(next.evaluators, next.deliverers)
	m.setup.Store(next)
	m.deliveries.set(next.deliverers)
	return func() {
		for _, d := range removed {
			if pending := d.published.Load().pending; pending > 0 {
				c.Logger.Warn("alert: notifier removed with undelivered alerts", "weir.notifier.name", d.name, "alerts", pending)
			}
		}
	}
}

// deliverersOf returns the deliverers of a config. It reuses the deliverers in old whose names are
// in the config, and returns the others as removed.
func deliverersOf(parts *nextSetup, old []*deliverer, state *stateStore) (all, removed []*deliverer) {
	gone := map[string]*deliverer{}
	for _, d := range old {
		gone[d.name] = d
	}
	for _, r := range parts.receivers {
		d := gone[r.name]
		delete(gone, r.name)
		if d == nil {
			d = newDeliverer(r.name, state)
		}
		d.setReceiver(r, parts.config)
		all = append(all, d)
	}
	return all, slices.Collect(maps.Values(gone))
}

// reconfigure changes the rule. It returns trackers of alerts that no longer belong to the rule,
// because their labels have changed.
func (e *evaluator) reconfigure(r Rule, c Config) (retired []*tracker) {
	relabeled := !maps.Equal(labelsOf(&e.rule, ""), labelsOf(new(ownRule(r, c)), ""))
	if relabeled {
		retired = e.retire()
	}
	before := e.sampling
	if e.guard.busy.Load() { // user code that hangs uses the sampling
		before = nil
	}
	e.rule, e.budget, e.sampling = ownRule(r, c), c.Budget, r.Value.beginSampling(before)
	if !relabeled {
		return nil
	}
	for key, old := range e.trackers {
		t := newTracker(&e.rule, key)
		if old.phase != inactive {
			t.progress, t.latest, t.valueName = old.progress, old.latest, old.valueName
		}
		e.trackers[key] = t
	}
	return retired
}

// retire returns copies of the trackers whose alerts receivers may know. The copies do not change
// with the rule.
func (e *evaluator) retire() (retired []*tracker) {
	rule := e.rule
	for _, t := range e.trackers {
		if t.reported && (t.phase == firing || !t.resolvedAt.IsZero()) {
			old := *t
			old.rule = &rule
			retired = append(retired, &old)
		}
	}
	return retired
}

// restoreRetired moves the retired trackers of the rule's own alerts back to the rule, and returns
// the other trackers. The alerts that come back belonged to another rule, or had other labels, for
// a time.
func (e *evaluator) restoreRetired(retired []*tracker) (others []*tracker) {
	for _, old := range retired {
		key := old.labels[labelKey]
		t := e.trackers[key]
		if t == nil {
			t = newTracker(&e.rule, key)
		}
		if t.id != old.id || (key != "") != e.rule.Value.each {
			others = append(others, old)
			continue
		}
		if t.phase == inactive {
			t.progress, t.latest, t.valueName = old.progress, old.latest, old.valueName
		}
		t.reported = true
		e.trackers[key] = t
	}
	return others
}

// retiredAlerts resolves the alerts of removed rules. It returns those that are not among the given
// alerts and were resolved within the retention: all that are resolved now, so that receivers are
// notified, and of the others as many of the latest as make maxAbsent.
func (m *Monitor) retiredAlerts(present []Alert) (alerts []Alert) {
	ids := map[string]bool{}
	for _, a := range present {
		ids[a.ID] = true
	}
	for _, t := range m.retired {
		if t.phase == firing {
			t.resolve(m.now)
		}
	}
	m.retired = slices.DeleteFunc(m.retired, func(t *tracker) bool { return ids[t.id] || m.now.Sub(t.resolvedAt) > retention })
	slices.SortStableFunc(m.retired, func(a, b *tracker) int { return a.resolvedAt.Compare(b.resolvedAt) })
	earlier := len(m.retired) // resolved before now
	if i := slices.IndexFunc(m.retired, func(t *tracker) bool { return t.resolvedAt.Equal(m.now) }); i >= 0 {
		earlier = i
	}
	m.retired = slices.Delete(m.retired, 0, min(max(len(m.retired)-maxAbsent, 0), earlier))
	for _, t := range m.retired {
		alerts = append(alerts, t.alert(m.now))
	}
	return alerts
}

// deliveries are the goroutines of Run that deliver.
type deliveries struct {
	ctx     context.Context
	all     sync.WaitGroup
	cancels map[*deliverer]context.CancelFunc
}

// set starts the goroutines of new deliverers, and ends the goroutines of removed ones.
func (s *deliveries) set(deliverers []*deliverer) {
	if s == nil {
		return
	}
	for d, cancel := range s.cancels {
		if !slices.Contains(deliverers, d) {
			cancel()
			delete(s.cancels, d)
		}
	}
	for _, d := range deliverers {
		if s.cancels[d] == nil {
			ctx, cancel := context.WithCancel(s.ctx)
			s.cancels[d] = cancel
			s.all.Go(func() { d.run(ctx) })
		}
	}
}

// setRunning stores the deliveries of Run, or nil when Run has ended.
func (m *Monitor) setRunning(s *deliveries, wake chan struct{}) {
	m.busy.Lock()
	m.deliveries = s
	s.set(m.setup.Load().deliverers)
	m.busy.Unlock()
	m.mu.Lock()
	m.wake = wake
	m.mu.Unlock()
}
