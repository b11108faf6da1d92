package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// trialRun is a breaker on trial beside a real one of the same config, which are asked about the
// same calls at the same times. What the real one lets through is made in both, and ends the
// same way. What it refuses is not made in the real one; on trial it passes, and ends somehow.
// So the trial must have refused and opened exactly as often as the real one, after each step.
type trialRun struct {
	*modelRun
	real, trial *breaker.Breaker
	calls       []*trialCall
}

type trialCall struct {
	start       time.Duration
	real, trial *breaker.Permit // real is nil for a call that it refused
}

func newTrialRun(t *testing.T, seed uint64) *trialRun {
	t.Helper()
	r := &trialRun{modelRun: &modelRun{
		t: t, name: fmt.Sprintf("seed %d", seed), draw: rand.New(rand.NewPCG(seed, 6)).IntN, counts: map[string]int{},
	}}
	r.given = r.config()
	r.given.Initial = breaker.Closed
	r.real = breaker.NewAt("b", r.given, t0)
	c := r.given
	c.Initial = breaker.Trial
	r.trial = breaker.NewAt("b", c, t0)
	return r
}

func (r *trialRun) step() {
	switch n := r.draw(100); {
	case n < 50:
		r.now += time.Duration(r.draw(3000)) * time.Microsecond
	case n < 60:
		r.now += time.Duration(r.draw(200)) * ms
	}
	at := r.now
	if r.draw(50) == 0 && r.begun {
		at -= time.Duration(r.draw(100)) * ms // stale
	}
	switch n := r.draw(100); {
	case n < 55:
		r.ask(at)
	case n < 95:
		if len(r.calls) > 0 {
			i := r.draw(len(r.calls))
			r.end(at, r.calls[i])
			r.calls = append(r.calls[:i], r.calls[i+1:]...)
		}
	case n < 97:
		r.sick = modelPick(r.modelRun, 0, 1, 5, 10)
	case n < 98:
		r.evidence.Successes, r.evidence.Failures = int64(r.draw(6)), int64(r.draw(3))
	case n < 99:
		r.reconfigure(at)
	}
	if len(r.calls) > 20 {
		r.calls = r.calls[10:] // forgotten
	}
	r.compare()
}

func (r *trialRun) ask(at time.Duration) {
	r.begun = true
	c := &trialCall{start: at}
	refused := r.trial.StatsAt(modelDate(at)).TrialRefused
	if p, err := r.real.AllowAt(modelDate(at)); err == nil {
		c.real = &p
	}
	p, err := r.trial.AllowAt(modelDate(at))
	require.NoError(r.t, err, "on trial nothing is refused")
	c.trial = &p
	r.note(at, "ask", c.real != nil)
	if now := r.trial.StatsAt(modelDate(at)).TrialRefused; (c.real == nil) != (now > refused) {
		r.fail("the decision", c.real != nil, now == refused)
	}
	r.calls = append(r.calls, c)
}

func (r *trialRun) end(at time.Duration, c *trialCall) {
	o := modelPick(r.modelRun, breaker.Success, breaker.Success, breaker.Ignored)
	if r.draw(10) < r.sick {
		o = breaker.Failure
	}
	after := time.Duration(0)
	if r.draw(20) == 0 {
		after = 60 * ms
	}
	r.note(at, "end", o, after, c.real != nil)
	if c.real != nil {
		c.real.RetryAfter(after)
		c.real.DoneAt(modelDate(at), o)
	}
	c.trial.RetryAfter(after)
	c.trial.DoneAt(modelDate(at), o)
}

func (r *trialRun) reconfigure(at time.Duration) {
	c := r.config()
	r.note(at, "reconfigure", modelTell(c))
	r.begun = true
	require.NoError(r.t, r.real.ReconfigureAt(modelDate(at), c))
	require.NoError(r.t, r.trial.ReconfigureAt(modelDate(at), c))
	r.given = c
}

// compare requires the same refusals, and the same openings at the same times for the same reasons.
func (r *trialRun) compare() {
	if got, want := r.trial.Stats().TrialRefused, r.real.Totals().Refused; got != want {
		r.fail("refusals", want, got)
	}
	would := r.trial.Changes()
	i := len(would)
	for _, c := range slices.Backward(r.real.Changes()) {
		if c.To != breaker.Open {
			continue
		}
		if i--; i < 0 {
			break // the trial's go further back: it has only these
		}
		c.From, c.To, c.Reason = breaker.Trial, breaker.Trial, "would open: "+c.Reason
		c.Seq = would[i].Seq // only openings are numbered on trial
		if would[i] != c {
			r.fail("an opening", c, would[i])
		}
	}
	if opened := r.trial.Stats().TrialOpened; int(opened) < len(would) || opened > 0 && would[len(would)-1].Seq != uint64(opened) {
		r.fail("TrialOpened", len(would), opened)
	}
}

func (r *trialRun) fail(what string, want, got any) {
	r.t.Helper()
	steps := ""
	for _, s := range r.steps[max(len(r.steps)-25, 0):] {
		steps += s.String() + "\n"
	}
	r.t.Fatalf("%s, step %d: on trial it is not as a real one\n%s\nconfig %s\nlast steps\n%s",
		r.name, len(r.steps), modelDifference(what, want, got), modelTell(r.given), steps)
}

func TestATrialDoesWhatARealBreakerDoes(t *testing.T) {
	seen := map[string]int64{}
	for seed := range uint64(300) {
		r := newTrialRun(t, seed)
		for range 300 {
			r.step()
		}
		s := r.trial.Stats()
		seen["opened"] += s.TrialOpened
		seen["refused"] += s.TrialRefused
		for _, c := range r.real.Changes() {
			seen[fmt.Sprintf("%v to %v by %v", c.From, c.To, c.Origin)]++
		}
		require.Zero(t, s.Totals.Refused)
		require.Equal(t, breaker.Trial, s.State)
	}
	for what, least := range map[string]int64{
		"opened": 1000, "refused": 5000, "closed to open by calls": 200, "closed to open by judge": 10,
		"half_open to open by calls": 200, "half_open to open by clock": 20, "half_open to closed by calls": 100,
	} {
		require.GreaterOrEqual(t, seen[what], least, "the steps have been dull: %s", what)
	}
}

func TestATrialSeesCallsThatHang(t *testing.T) {
	play := func(initial breaker.State) breaker.Stats {
		b := breaker.NewAt("b", breaker.Config{SlowCall: time.Second, HungCalls: true, Initial: initial}, t0)
		for i := range 600 {
			_, _ = b.AllowAt(modelAt(100 * i)) // none ever comes back
		}
		return b.StatsAt(modelAt(60_000))
	}
	closed, trial := play(breaker.Closed), play(breaker.Trial)
	require.NotZero(t, closed.Totals.Refused)
	require.Equal(t, closed.Totals.Refused, trial.TrialRefused)
	require.Equal(t, int64(1), trial.TrialOpened)
}

// A trial laid over a breaker by hand begins anew, and ends without a trace.
func TestATrialByHandBeginsClosedAndEmpty(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 2}, t0)
	require.NoError(t, modelDo(b, 0, breaker.Failure))
	b.ForceAt(modelAt(1), breaker.Trial)
	require.NoError(t, modelDo(b, 1, breaker.Failure))
	require.Zero(t, b.StatsAt(modelAt(1)).TrialOpened, "the failure before is not of the trial")
	held := admit(t, b, 2)
	require.NoError(t, modelDo(b, 2, breaker.Failure))
	require.NoError(t, modelDo(b, 3, breaker.Failure))
	s := b.StatsAt(modelAt(3))
	require.Equal(t, []int64{1, 1}, []int64{s.TrialOpened, s.TrialRefused})
	b.ReleaseAt(modelAt(4))
	require.False(t, held.DoneAt(modelAt(4), breaker.Failure))
	b.ForceAt(modelAt(5), breaker.Trial)
	require.NoError(t, modelDo(b, 5, breaker.Success))
	require.Equal(t, int64(1), b.StatsAt(modelAt(5)).TrialRefused, "the next trial is closed")
}
