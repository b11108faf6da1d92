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

// Settings returns the override of the breaker itself, without that of its group.
func (v breakerView) Settings() []view.Setting {
	number, s := v.b.overrideNumber(), v.b.overrideWithoutRefuse()
	v.b.ownUnder(number, func(_, own State) State {
		s = own
		return own
	})
	return stateSetting(s, number)
}

func (v breakerView) Set(why string, s ...view.Setting) ([]view.Setting, error) {
	next, err := settings.Next(stateSetting("", 0), s)
	if err != nil {
		return nil, err
	}
	to, err := overrideIn(next)
	if err != nil {
		return nil, err
	}
	return stateSetting(to, v.b.setOverride(time.Now(), to, overrideReason(to, why))), nil
}

func (v breakerView) Restore(why string, set, earlier []view.Setting) (done bool) {
	v.b.changeUnderLock(time.Now(), func(b *Breaker, p *regime, at time.Duration) {
		next, version, ok := settings.Undo(stateSetting("", b.overrideSet), set, earlier)
		if !ok {
			return
		}
		s, err := overrideIn(next)
		if done = err == nil; !done {
			return
		}
		b.overrideSet = version
		b.ownUnder(version, func(over, _ State) State {
			own := s
			s = over
			return own
		})
		b.changeOverride(p, s, at, overrideReason(s, why))
	})
	return done
}

// stateSetting returns an override as a setting.
func stateSetting(s State, version uint64) []view.Setting {
	return []view.Setting{{Name: settings.State, Value: string(s), Version: version}}
}

// overrideIn returns the override of a stateSetting, or "" for none.
func overrideIn(s []view.Setting) (State, error) {
	to := State(s[0].Value)
	if to != "" && !to.isOverride() {
		return "", fmt.Errorf("breaker: %.64q is not an override", s[0].Value)
	}
	return to, nil
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
func (v groupView[K]) State() string { return string(v.g.override.currentOverride()) }
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
func (v groupView[K]) Settings() []view.Setting { return v.g.override.settings() }

func (v groupView[K]) Set(why string, s ...view.Setting) ([]view.Setting, error) {
	next, err := settings.Next(stateSetting("", 0), s)
	if err != nil {
		return nil, err
	}
	to, err := overrideIn(next)
	if err != nil {
		return nil, err
	}
	version := settings.NextVersion()
	v.change(why, func() (State, uint64, bool) { return to, version, true })
	return stateSetting(to, version), nil
}

func (v groupView[K]) Restore(why string, set, earlier []view.Setting) bool {
	return v.change(why, func() (to State, version uint64, ok bool) {
		next, version, ok := settings.Undo(v.g.override.settings(), set, earlier)
		if ok {
			var err error
			to, err = overrideIn(next)
			ok = err == nil
		}
		return to, version, ok
	})
}

// change changes the override to the one that next returns, unless it returns false.
func (v groupView[K]) change(why string, next func() (to State, version uint64, ok bool)) bool {
	o := &v.g.override
	var queues []*changeQueue
	o.changing.Lock()
	to, version, ok := next()
	if ok {
		queues = v.g.changeAll(to, version, overrideReason(to, why))
	}
	o.changing.Unlock()
	deliverAll(queues)
	return ok
}
