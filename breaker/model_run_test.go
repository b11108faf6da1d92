package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// modelRun is a breaker and its model. After each step everything that both show must be equal, at the time of
// the step and at a later time.
type modelRun struct {
	t     testing.TB
	name  string
	draw  func(n int) int // a number from 0 up to n−1
	model *modelBreaker
	real  *breaker.Breaker

	given    breaker.Config
	told     recorder
	compared int // changes
	evidence window.Counts
	held     []*modelPair // calls in flight, and some that were reported
	now      time.Duration
	begun    bool // a time was given
	sick     int  // how many of ten calls fail
	hands    int  // of a hundred steps, how many are by hand at the most
	steps    []modelStep
	counts   map[string]int // how often what was done
}

// modelPair is one call in both.
type modelPair struct {
	n      int
	call   *modelCall
	permit *breaker.Permit
}

func newModelRun(t testing.TB, name string, draw func(int) int) *modelRun {
	r := &modelRun{t: t, name: name, draw: draw, counts: map[string]int{}}
	r.given = r.config()
	r.hands = modelPick(r, 0, 1, 11)
	require.NoError(t, r.given.Validate(), name)
	r.model = newModel(r.given)
	r.real = breaker.NewAt("model", r.told.on(r.given), t0)
	return r
}

// --- configs ---

func modelPick[T any](r *modelRun, of ...T) T { return of[r.draw(len(of))] }

const ms = time.Millisecond

func (r *modelRun) config() (c breaker.Config) {
	c.FailureRate = modelPick(r, 0, 0, 0.25, 1.0/3, 0.57, 0.75, 1, breaker.Off)
	c.ConsecutiveFailures = modelPick(r, 0, 0, 0, 0, 2, 3, 5)
	c.MinCalls = modelPick(r, 1, 2, 3, 4, 5, 8, 0, 1)
	if r.draw(2) == 0 {
		c.SlowCall = modelPick(r, 2*ms, 5*ms, 20*ms)
		c.SlowRate = modelPick(r, 0, 0.25, 0.75, 1, breaker.Off)
		c.HungCalls = r.draw(3) == 0
	}
	r.windowOf(&c)
	c.Cooldown = modelPick(r, 10*ms, 10*ms, 30*ms, 100*ms, 0, breaker.Off)
	c.CooldownFactor = modelPick(r, 0, 1, 1.5, 2, 10)
	c.MaxCooldown = modelPick(r, 0, max(c.Cooldown, 5*time.Second), 4*max(c.Cooldown, 0))
	c.MaxRetryAfter = modelPick(r, 0, 40*ms, breaker.Off)
	c.Probes = modelPick(r, 1, 2, 3, 4, 5, 0)
	c.ProbeTimeout = modelPick(r, 10*ms, 30*ms, 0)
	c.HalfOpenTimeout = modelPick(r, 0, 0, 15*ms, 80*ms)
	c.Initial = modelPick(r, breaker.Closed, breaker.Closed, breaker.Closed, breaker.Open, breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow)
	if r.draw(4) == 0 {
		c.Trip = func(c window.Counts) (string, bool) {
			return "too much of it", c.Ignored >= 2 && c.Failures >= 1 || c.Slow >= 4 || c.ConsecutiveFailures == 4
		}
	}
	if r.draw(4) == 0 {
		c.SharedCounts = func() window.Counts { return r.evidence }
	}
	return c
}

func (r *modelRun) windowOf(c *breaker.Config) {
	if r.draw(3) == 0 {
		c.LastCalls = modelPick(r, 1, 2, 3, 5, 10)
		return
	}
	c.Window = modelPick(r, 100*ms, 20*ms, 50*ms, time.Second, 0)
	c.Buckets = modelPick(r, 1, 2, 3, 5, 10, 0)
}

// --- times ---

// at advances the time and returns it, or sometimes a stale time.
func (r *modelRun) at() time.Duration {
	switch n := r.draw(100); {
	case n < 40:
	case n < 75:
		r.now += time.Duration(r.draw(3000)) * time.Microsecond
	case n < 85:
		r.now += time.Duration(1+r.draw(20)) * ms
	case n < 90:
		r.now += time.Duration(r.draw(200)) * ms
	case n < 97:
		r.now = max(r.now, r.deadline())
	case n < 98:
		r.now += time.Duration(r.draw(30)) * time.Second
	case !r.begun: // the first time given is none that is stale
	default:
		return modelPick(r, r.now-ms, r.now-5*ms, r.now-20*ms, r.now-200*ms, r.now-time.Minute, modelStale)
	}
	return r.now
}

// modelStale is the offset of the zero time, which is as stale as can be.
const modelStale = -(1<<62 - 1)

func modelDate(at time.Duration) time.Time {
	if at == modelStale {
		return time.Time{}
	}
	return t0.Add(at)
}

// deadline is a time at which something ends, or a nanosecond beside.
func (r *modelRun) deadline() time.Duration {
	ends := []time.Duration{r.now}
	deadlines := []time.Duration{r.model.stay.until}
	if r.model.shadow != nil {
		deadlines = append(deadlines, r.model.shadow.stay.until)
	}
	for _, end := range deadlines {
		if end >= r.now && end < r.now+time.Minute {
			ends = append(ends, end)
		}
	}
	for _, c := range r.model.places {
		if c != nil {
			ends = append(ends, c.lease)
		}
	}
	if r.model.config.LastCalls == 0 {
		w := r.model.width()
		ends = append(ends, (r.now/w+1)*w)
	}
	return modelPick(r, ends...) + time.Duration(r.draw(3)-1)
}

// --- steps ---

// step makes one random step with both, and compares them.
func (r *modelRun) step() {
	if r.model.stay.rounds >= 3 {
		r.counts["3 rounds or more"]++
	}
	at := r.at()
	if r.now-20*time.Second > r.model.stay.until { // or the model would list thousands of rounds
		r.allow(r.now)
	}
	switch n := r.draw(100); {
	case n >= 89 && n < 89+r.hands:
		r.byHand(at)
	case n < 45, n >= 89:
		c := r.allow(at)
		switch {
		case c == nil:
		case r.probing() && r.draw(2) == 0:
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
		r.sick = modelPick(r, 0, 0, 1, 5, 10)
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

// probing reports whether probes are or may be in flight. Then more calls stay in flight or are ignored, so
// that slots and their timeouts matter.
func (r *modelRun) probing() bool { return r.model.stay.state == breaker.HalfOpen }

// byHand lifts overrides more often than it sets them.
func (r *modelRun) byHand(at time.Duration) {
	date := modelDate(at)
	r.begun = true
	switch n := r.draw(11); {
	case n < 2:
		s := modelPick(r, breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow, breaker.Shadow)
		r.note(at, "force", s)
		r.real.ForceAt(date, s)
		r.model.force(at, s)
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

// reconfigure changes a part of the config, or nothing.
func (r *modelRun) reconfigure(at time.Duration) {
	old, c := r.given, r.config()
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
	r.note(at, "reconfigure", modelTell(c))
	require.NoError(r.t, r.real.ReconfigureAt(modelDate(at), r.told.on(c)))
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
	case n == 0, n < 6 && r.probing():
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

// --- tests ---

// TestScenarioA44_TheBreakerIsAsItsModel makes 105,000 random steps with 300 random configs, and
// requires that they have been everywhere.
func TestScenarioA44_TheBreakerIsAsItsModel(t *testing.T) {
	const runs, steps = 300, 350
	seen := map[string]int{}
	for seed := range uint64(runs) {
		r := newModelRun(t, fmt.Sprintf("seed %d", seed), rand.New(rand.NewPCG(seed, 4)).IntN)
		for range steps {
			r.step()
		}
		r.tally(seen)
	}
	for what, least := range map[string]int{
		"allow": 50_000, "done": 30_000, "check": 5000, "reconfigure": 500, "late": 1000, "abandoned": 100,
		"refused open": 5000, "refused half_open": 1000, "refused forced_open": 1000,
		"shadow opened": 100, "shadow refused": 100, "3 rounds or more": 100,
		"closed to open by calls": 200, "closed to open by hand": 20, "closed to open by shared_counts": 10,
		"open to half_open by clock": 500, "open to closed by hand": 10,
		"half_open to open by calls": 200, "half_open to open by clock": 50, "half_open to open by hand": 20,
		"half_open to closed by calls": 200, "half_open to closed by hand": 10,
		"half_open to forced_open by hand": 10, "half_open to shadow by hand": 10,
		"forced_open to closed by hand": 10, "forced_open to open by hand": 10, "forced_open to half_open by hand": 10,
	} {
		require.GreaterOrEqual(t, seen[what], least, "the steps have been dull: %s", what)
	}
}

// tally counts what the run has done.
func (r *modelRun) tally(seen map[string]int) {
	for what, n := range r.counts {
		seen[what] += n
	}
	for _, c := range r.model.changes {
		seen[fmt.Sprintf("%v to %v by %v", c.From, c.To, c.Origin())]++
	}
	seen["late"] += int(r.model.late)
	seen["abandoned"] += int(r.model.abandoned)
	seen["shadow opened"] += int(r.model.shadowOpened)
	seen["shadow refused"] += int(r.model.shadowRefused)
}

// FuzzModel makes the config and the steps out of bytes.
func FuzzModel(f *testing.F) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		script := make([]byte, 100<<(seed%5))
		for i := range script {
			script[i] = byte(rnd.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		script = script[:min(len(script), 8<<10)]
		draw := func(n int) (k int) {
			for size := 1; size < n && len(script) > 0; size <<= 8 {
				k = k<<8 | int(script[0])
				script = script[1:]
			}
			return k % n
		}
		for r := newModelRun(t, "script", draw); len(script) > 0; {
			r.step()
		}
	})
}
