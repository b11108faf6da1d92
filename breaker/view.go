package breaker

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/keytext"
	"github.com/weir-go/weir/internal/settings"
	"github.com/weir-go/weir/stat/view"
)

// Views yields the view of the breaker for package admin and the live page.
func (b *Breaker) Views(yield func(view.View) bool) { yield(breakerView{b}) }

// Views yields the view of the group for package admin and the live page.
func (g *Group[K]) Views(yield func(view.View) bool) { yield(groupView[K]{g}) }

// breakerView is what package admin and the live page see of a breaker.
type breakerView struct{ b *Breaker }

func (breakerView) Kind() string      { return "breaker" }
func (v breakerView) Name() string    { return v.b.name }
func (v breakerView) State() string   { return string(v.b.State()) }
func (v breakerView) Tripped() bool   { return v.b.Tripped() }
func (v breakerView) Explain() string { return v.b.Explain() }

func (v breakerView) Reset(_ context.Context, why string) error {
	v.b.resetFor(time.Now(), strings.TrimSpace("reset "+why))
	return nil
}

// Settings returns the override of the breaker itself that was set by hand.
func (v breakerView) Settings() []view.Setting {
	v.b.mu.Lock()
	defer v.b.mu.Unlock()
	return stateSetting(v.b.rareSoFar().own)
}

func (v breakerView) Set(why string, s ...view.Setting) ([]view.Setting, error) {
	o, err := overrideIn(s)
	if err != nil {
		return nil, err
	}
	o.version = v.b.setOverride(time.Now(), o, overrideReason(o.state, why))
	return stateSetting(o), nil
}

func (v breakerView) Restore(why string, set, earlier []view.Setting) (done bool) {
	v.b.changeUnderLock(time.Now(), func(b *Breaker, p *regime, at time.Duration) {
		var o override
		if o, done = b.rareSoFar().own.restored(set, earlier); done {
			b.rareParts().own = o
			b.followOverride(p, at, overrideReason(o.state, why))
		}
	})
	return done
}

// stateSetting returns an override as a setting.
func stateSetting(o override) []view.Setting {
	return []view.Setting{{Name: settings.State, Value: string(o.state), Version: o.version}}
}

// overrideIn returns the override that the settings set, without a version.
func overrideIn(s []view.Setting) (override, error) {
	next, err := settings.Next(stateSetting(override{}), s)
	if err != nil {
		return override{}, err
	}
	// refused callers are not told who has forced the breaker, and why
	o := override{state: State(next[0].Value), reason: forcedReason}
	if o.state != "" && !o.state.isOverride() {
		return override{}, fmt.Errorf("breaker: %.64q is not an override", o.state)
	}
	return o, nil
}

// restored returns the override that is in effect again after the one that was set, if o is that
// one.
func (o override) restored(set, earlier []view.Setting) (before override, ok bool) {
	next, version, ok := settings.Undo(stateSetting(o), set, earlier)
	if !ok {
		return override{}, false
	}
	before, err := overrideIn(next)
	before.version = version
	return before, err == nil
}

// overrideReason returns the reason of a change to the override s.
func overrideReason(s State, why string) string {
	verb := "forced "
	if s == "" {
		verb = "released "
	}
	return strings.TrimSpace(verb + why)
}

// Status returns what the live page shows of the breaker. It takes no lock that a call takes,
// except that of a breaker that is recovering.
func (v breakerView) Status() view.Status {
	b := v.b
	at := b.peekNow()
	p := b.regime.Load()
	c := b.counts(at)
	s := view.Status{Incidents: p.allIncidents(b.date), SlowRate: c.SlowRate(), Config: p.rules}
	if p.rules.config.SlowRate > 0 {
		s.SlowLimit, s.SlowCall = p.rules.config.SlowRate, max(p.rules.config.SlowCall, 0)
	}
	if p.rules.config.Latency {
		if l := b.Latency(); l.Count() > 0 {
			s.P50, s.P99 = l.Quantile(0.5), l.Quantile(0.99)
		}
	}
	switch now := p.stayAt(at); now.state {
	case Open:
		if now.until != math.MaxInt64 {
			s.RetryAt = b.date(now.until)
		}
	case HalfOpen:
		s.Probes = int(c.Calls())
	case Recovering:
		b.mu.Lock()
		s.OneOf = p.ramp.oneOf
		b.mu.Unlock()
	default: // nothing more is known
	}
	b.addFailures(&s, p, c.Failures)
	return s
}

// addFailures adds why the breaker refuses calls, or the last failure in the window.
func (b *Breaker) addFailures(s *view.Status, p *regime, failures int64) {
	if e := p.refusal; e != nil && s.Lasts() != nil {
		s.Reason, s.Margin = e.Reason, e.Margin
		for _, f := range slices.Backward(e.LastFailures) {
			s.Failures = append(s.Failures, view.Failure(f))
		}
		return
	}
	if kept := b.failures.Load(); kept != nil && failures > 0 {
		if all := kept.snapshot(b.date); len(all) > 0 {
			s.Failures = []view.Failure{view.Failure(all[len(all)-1])}
		}
	}
}

// groupView is what package admin and the live page see of a group.
type groupView[K comparable] struct{ g *Group[K] }

func (groupView[K]) Kind() string    { return "breaker_group" }
func (v groupView[K]) Name() string  { return v.g.name }
func (v groupView[K]) State() string { return string(v.g.override.load().state) }
func (groupView[K]) Tripped() bool   { return false }
func (groupView[K]) Explain() string { return "" }

func (v groupView[K]) Reset(_ context.Context, why string) error {
	for _, b := range v.g.All() {
		b.resetFor(time.Now(), strings.TrimSpace("reset "+why))
	}
	return nil
}

func (v groupView[K]) Members() iter.Seq2[string, view.View] {
	return func(yield func(string, view.View) bool) {
		for key, b := range v.g.All() {
			if !yield(keytext.Label(key), breakerView{b}) {
				return
			}
		}
	}
}

func (v groupView[K]) Shown() iter.Seq2[string, view.View] {
	return func(yield func(string, view.View) bool) {
		for _, m := range v.g.members.All() {
			if m.own != nil && !yield(m.label, breakerView{m.breaker}) {
				return
			}
		}
	}
}

// Settings returns the override of all members.
func (v groupView[K]) Settings() []view.Setting { return stateSetting(v.g.override.load()) }

func (v groupView[K]) Set(why string, s ...view.Setting) ([]view.Setting, error) {
	o, err := overrideIn(s)
	if err != nil {
		return nil, err
	}
	v.g.changeOverride(why, func(override) (override, bool) {
		o.version = settings.NextVersion()
		return o, true
	})
	return stateSetting(o), nil
}

func (v groupView[K]) Restore(why string, set, earlier []view.Setting) bool {
	return v.g.changeOverride(why, func(now override) (override, bool) { return now.restored(set, earlier) })
}
