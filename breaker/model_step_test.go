package breaker_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// step makes one random step with the breaker and its model, and compares them.
func (r *modelRun) step() {
	if r.model.stay.rounds >= 3 {
		r.counts["3 rounds or more"]++
	}
	at := r.nextTime()
	if r.now-20*time.Second > r.model.stay.until {
		// otherwise the model would list thousands of rounds
		r.allow(r.now)
	}
	switch n := r.draw(100); {
	case n >= 89 && n < 89+r.hands:
		r.changeByHand(at)
	case n < 45, n >= 89:
		c := r.allow(at)
		switch {
		case c == nil:
		case r.hasProbes() && r.draw(2) == 0:
			r.held = append(r.held, c)
		default:
			r.now = max(r.now, at+time.Duration(r.draw(8000)/(1+r.draw(20)))*time.Microsecond)
			r.done(r.now, c)
		}
	case n < 62:
		if c := r.allow(at); c != nil {
			r.held = append(r.held, c)
		}
	case n < 78:
		if len(r.held) > 0 {
			r.done(at, modelPick(r, r.held...))
		}
	case n < 84:
		r.check(at)
	case n < 87:
		r.sick = modelPick(r, 0, 0, 1, 5, 7, 10)
	default:
		r.evidence = window.Counts{Successes: int64(2 + r.draw(6)), Failures: int64(r.draw(3)), Slow: int64(r.draw(3))}
		*r.model.evidence = r.evidence
		r.note(at, "evidence", fmt.Sprintf("%+v", r.evidence))
	}
	if len(r.held) > 12 {
		r.held = r.held[4:]
	}
	r.compareRest()
	r.compare(at)
	r.compare(max(at, r.now) + modelPick(r, 0, 1, 10*ms, 35*ms, 100*ms, time.Second))
}

// hasProbes reports whether probes are or may be in flight. Then more calls stay in flight or are
// ignored, so that slots and their timeouts matter.
func (r *modelRun) hasProbes() bool { return r.model.stay.state == breaker.HalfOpen }

// changeByHand makes a random change by hand. It lifts overrides more often than it sets them.
func (r *modelRun) changeByHand(at time.Duration) {
	date := modelDate(at)
	r.begun = true
	switch n := r.draw(11); {
	case n < 2:
		s := modelPick(r, breaker.ForcedOpen, breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow, breaker.Shadow)
		reason := modelPick(r, "", "by hand", "maintenance")
		r.note(at, "force", s, reason)
		r.real.ForceAt(date, s, reason)
		r.model.force(at, s, reason)
	case n < 6:
		r.note(at, "release")
		r.real.ReleaseAt(date)
		r.model.release(at)
	case n < 8:
		d := modelPick(r, 0, ms, 20*ms, 100*ms, -ms, modelNever)
		r.note(at, "open for", d)
		r.real.OpenForAt(date, d)
		r.model.openFor(at, d)
	case n < 9:
		r.note(at, "reset")
		r.real.ResetAt(date)
		r.model.reset(at)
	default:
		r.reconfigure(at)
	}
}

// reconfigure changes a part of the config, or all of it.
func (r *modelRun) reconfigure(at time.Duration) {
	old, c := r.given, r.drawConfig()
	switch r.draw(4) {
	case 0: // the window alone
		c, old = old, c
		c.Window, c.Buckets, c.LastCalls = old.Window, old.Buckets, old.LastCalls
	case 1: // all but the window
		c.Window, c.Buckets, c.LastCalls = old.Window, old.Buckets, old.LastCalls
	case 2: // the probes alone
		c, old = old, c
		c.Probes, c.MinCalls = old.Probes, old.MinCalls
	}
	r.given = c
	r.note(at, "reconfigure", modelFields(c))
	require.NoError(r.t, r.real.ReconfigureAt(modelDate(at), r.told.attachTo(c)))
	r.model.reconfigure(at, c)
}

func (r *modelRun) allow(at time.Duration) *modelPair {
	c := &modelPair{n: len(r.steps)}
	r.begun = true
	call, want := r.model.allow(at)
	p, err := r.real.AllowAt(modelDate(at))
	r.note(at, "allow", "#", c.n, want == nil)
	r.equalErrors("AllowAt", want, err)
	if want != nil {
		return nil
	}
	c.call, c.permit = call, &p
	return c
}

func (r *modelRun) done(at time.Duration, c *modelPair) {
	o := breaker.Success
	switch n := r.draw(20); {
	case n == 0, n < 6 && r.hasProbes():
		o = breaker.Ignored
	case n == 19:
		o = breaker.Outcome(7) // none of the three
	case r.draw(10) < r.sick:
		o = breaker.Failure
	}
	after := time.Duration(0)
	if r.draw(20) == 0 {
		after = modelPick(r, 15*ms, 60*ms, time.Hour, -ms)
	}
	c.permit.SetRetryAfter(after)
	want := r.model.done(c.call, at, o, after)
	got := c.permit.RecordAt(modelDate(at), o)
	r.note(at, "done", "#", c.n, o, after, want)
	if got != want {
		r.fail("DoneAt", want, got)
	}
}

func (r *modelRun) check(at time.Duration) {
	want := r.model.check(at)
	err := r.real.CheckAt(modelDate(at))
	r.note(at, "check", want == nil)
	r.equalErrors("CheckAt", want, err)
}
