package alert

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/latency"
)

// watch is one rule being watched by a monitor.
type watch struct {
	rule   Rule
	budget time.Duration
	guard  guard
	probe  probe
	tracks map[string]*track // by the label "key"

	took    latency.Histogram
	working watchFigures                 // of the evaluation
	figures atomic.Pointer[watchFigures] // the latest, for whoever looks
}

// watchFigures are published as a whole and not changed after that.
type watchFigures struct {
	states      [stages]int64 // alerts at each stage
	transitions [stages]int64 // by the stage entered
	evaluations [faults]int64
	latest      fault
	value       float64 // the worst of the latest evaluation
	valued      bool
	at          time.Time
}

func newWatch(r Rule, c Config) *watch {
	w := &watch{rule: r, budget: c.Budget, probe: r.Value.start(), tracks: map[string]*track{}}
	w.rule.Labels = map[string]string{}
	if c.Instance != noInstance {
		w.rule.Labels[labelInstance] = c.Instance
	}
	maps.Copy(w.rule.Labels, r.Labels)
	w.rule.Annotations = maps.Clone(r.Annotations)
	if !r.Value.each {
		w.tracks[""] = newTrack(&w.rule, "")
		w.working.states[inactive] = 1
	}
	w.publish()
	return w
}

// evaluate takes one look and returns the alerts of the rule that there is anything
// to tell about. If the context ends meanwhile, nothing was evaluated.
func (w *watch) evaluate(ctx context.Context, at time.Time) ([]Alert, outcome) {
	began := time.Now()
	readings, seen, how := w.look(ctx, at)
	if ctx.Err() != nil {
		return nil, how
	}
	if seen {
		w.advance(readings, at)
	} else {
		w.advanceBlind(at)
	}
	alerts := w.alerts(at)
	if described := w.describe(ctx, alerts); how.fault == noFault {
		how = described
	}
	w.book(how.fault, readings, at)
	w.took.Record(time.Since(began))
	return alerts, how
}

// within runs the rule's own code within the budget.
func (w *watch) within(ctx context.Context, fn func()) outcome {
	ctx, cancel := context.WithTimeout(ctx, w.budget)
	defer cancel()
	return w.guard.call(ctx, fn)
}

// look takes a sample of each member, and reports whether it has seen them all. A figure
// that is not finite is no data.
func (w *watch) look(ctx context.Context, at time.Time) ([]reading, bool, outcome) {
	var readings []reading // no named results: code that hangs may write to these for ever
	var found outcome
	how := w.within(ctx, func() {
		found = w.probe(at, func(r reading) { readings = append(readings, r) })
	})
	if how.fault != noFault {
		return nil, false, how
	}
	for i, r := range readings {
		if r.sample.OK && (math.IsNaN(r.sample.Value) || math.IsInf(r.sample.Value, 0)) {
			readings[i].sample = measurement{}
			if found.fault == noFault {
				found.fault = notFinite
			}
		}
	}
	return readings, true, found
}

func (w *watch) advance(readings []reading, at time.Time) {
	present := make(map[string]bool, len(readings))
	for _, r := range readings {
		present[r.label] = true
		t := w.tracks[r.label]
		if t == nil {
			t = newTrack(&w.rule, r.label)
			w.tracks[r.label] = t
		}
		t.name = cmp.Or(r.name, t.name)
		w.count(t.see(r.sample, at), t.state)
	}
	var gone []*track
	for label, t := range w.tracks {
		if present[label] {
			continue
		}
		w.count(t.miss(at), t.state)
		if t.live() {
			gone = append(gone, t)
		} else {
			delete(w.tracks, label)
		}
	}
	w.bound(gone, at)
}

// maxGone is how many alerts of members that are gone a rule remembers.
const maxGone = 1000

// bound forgets the oldest alerts of members that are gone, if there are too many. One that
// goes on firing resolves first, so that its receivers hear of it.
func (w *watch) bound(gone []*track, at time.Time) {
	if len(gone) <= maxGone {
		return
	}
	slices.SortFunc(gone, func(a, b *track) int { return a.lastSeen().Compare(b.lastSeen()) })
	for _, t := range gone[:len(gone)-maxGone] {
		if t.state == firing {
			w.count(t.end(at), t.state)
		} else {
			delete(w.tracks, t.labels[labelKey])
		}
	}
}

// advanceBlind is an evaluation without data about any member.
func (w *watch) advanceBlind(at time.Time) {
	for _, t := range w.tracks {
		w.count(t.see(measurement{}, at), t.state)
	}
}

func (w *watch) count(changed bool, to stage) {
	if changed {
		w.working.transitions[to]++
	}
}

// alerts returns what there is to tell, by key.
func (w *watch) alerts(at time.Time) []Alert {
	var alerts []Alert
	for _, t := range w.tracks {
		if t.live() {
			alerts = append(alerts, t.alert(at))
		}
	}
	slices.SortFunc(alerts, func(a, b Alert) int { return cmp.Compare(a.Key, b.Key) })
	return alerts
}

// describe lets the rule write the summaries. Where it fails the default ones stay.
func (w *watch) describe(ctx context.Context, alerts []Alert) outcome {
	if w.rule.Describe == nil || len(alerts) == 0 {
		return outcome{}
	}
	given := cloned(alerts)
	texts := make([]string, len(alerts))
	var found outcome
	how := w.within(ctx, func() {
		for i, a := range given {
			texts[i] = a.Summary
			if one := protect(func() { texts[i] = w.rule.Describe(a) }); one.fault != noFault {
				found = one
			}
		}
	})
	if how.fault != noFault {
		return how
	}
	for i := range alerts {
		alerts[i].Summary = summaryText(texts[i])
	}
	return found
}

func (w *watch) book(f fault, readings []reading, at time.Time) {
	w.working.evaluations[f]++
	w.working.latest, w.working.at = f, at
	w.working.states = [stages]int64{}
	for _, t := range w.tracks {
		w.working.states[t.state]++
	}
	w.working.valued = false
	for _, r := range readings {
		if s := r.sample; s.OK && (!w.working.valued || w.rule.When.worse(s.Value, w.working.value)) {
			w.working.value, w.working.valued = s.Value, true
		}
	}
	w.publish()
}

func (w *watch) publish() {
	figures := w.working
	w.figures.Store(&figures)
}

// tell logs when a rule begins to fail and when it works again.
func (w *watch) tell(logger *slog.Logger, was fault, how outcome) {
	switch {
	case how.fault == was:
	case how.fault == noFault:
		logger.Info("alert: the rule works again", "rule", w.rule.Name)
	case how.fault == panicked:
		logger.Error("alert: the rule panicked", "rule", w.rule.Name, "panic", how.detail, "stack", string(how.stack))
	default:
		logger.Error("alert: the rule failed", "rule", w.rule.Name, "error", how.fault.String())
	}
}
