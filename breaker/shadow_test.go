package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
)

// shadowRun makes the same calls at the same times through a breaker in the state Shadow and a real
// breaker of the same Config. A call that the real breaker lets through has the same result in
// both. A call that the real breaker refuses passes in the state Shadow, with some result. After
// each step the shadow must have refused and opened exactly as often as the real breaker.
type shadowRun struct {
	*modelRun
	real, shadow *breaker.Breaker
	would        recorder // of shadow
	calls        []*shadowCall
}

type shadowCall struct {
	start        time.Duration
	real, shadow *breaker.Permit // real is nil for a call that the real breaker refused
}

func newShadowRun(t *testing.T, seed uint64) *shadowRun {
	t.Helper()
	r := &shadowRun{modelRun: &modelRun{
		t: t, name: fmt.Sprintf("seed %d", seed), draw: rand.New(rand.NewPCG(seed, 6)).IntN, counts: map[string]int{},
	}}
	r.given = r.drawConfig()
	r.given.Force, r.given.ForceReason = "", ""
	r.real = breaker.NewAt("b", r.told.attachTo(r.given), t0)
	c := r.given
	c.Force = breaker.Shadow
	r.shadow = breaker.NewAt("b", r.would.attachTo(c), t0)
	return r
}

func (r *shadowRun) step() {
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
		r.makeCall(at)
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

func (r *shadowRun) makeCall(at time.Duration) {
	r.begun = true
	c := &shadowCall{start: at}
	refused := r.shadow.StatsAt(modelDate(at)).ShadowRefused
	if p, err := r.real.AllowAt(modelDate(at)); err == nil {
		c.real = &p
	}
	p, err := r.shadow.AllowAt(modelDate(at))
	require.NoError(r.t, err, "in shadow mode nothing is refused")
	c.shadow = &p
	r.note(at, "ask", c.real != nil)
	if now := r.shadow.StatsAt(modelDate(at)).ShadowRefused; (c.real == nil) != (now > refused) {
		r.fail("the decision", c.real != nil, now == refused)
	}
	r.calls = append(r.calls, c)
}

func (r *shadowRun) end(at time.Duration, c *shadowCall) {
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
		c.real.SetRetryAfter(after)
		c.real.RecordAt(modelDate(at), o)
	}
	c.shadow.SetRetryAfter(after)
	c.shadow.RecordAt(modelDate(at), o)
}

func (r *shadowRun) reconfigure(at time.Duration) {
	c := r.drawConfig()
	c.Force, c.ForceReason = "", ""
	r.given = c
	r.note(at, "reconfigure", modelFields(c))
	r.begun = true
	require.NoError(r.t, r.real.ReconfigureAt(modelDate(at), r.told.attachTo(c)))
	c.Force = breaker.Shadow
	require.NoError(r.t, r.shadow.ReconfigureAt(modelDate(at), r.would.attachTo(c)))
}

// compare requires the same refusals, and the same openings at the same times for the same reasons.
func (r *shadowRun) compare() {
	if got, want := r.shadow.StatsNow().ShadowRefused, r.real.Totals().Refused; got != want {
		r.fail("refusals", want, got)
	}
	would := r.would.all
	i := len(would)
	for _, c := range slices.Backward(r.told.all) {
		if c.To != breaker.Open {
			continue
		}
		if i--; i < 0 {
			break // the shadow's go further back: it has only these
		}
		c.From, c.To, c.Reason = breaker.Shadow, breaker.Shadow, "would open: "+c.Reason
		// only openings are numbered in shadow mode
		c = c.WithSeq(would[i].Seq())
		// the calls that the shadow refuses may fail too
		c.LastFailures, would[i].LastFailures = nil, nil
		if !reflect.DeepEqual(would[i], c) {
			r.fail("an opening", c, would[i])
		}
	}
	if opened := r.shadow.StatsNow().ShadowOpened; int(opened) < len(would) || opened > 0 && would[len(would)-1].Seq() != uint64(opened) {
		r.fail("ShadowOpened", len(would), opened)
	}
}

func (r *shadowRun) fail(what string, want, got any) {
	r.t.Helper()
	steps := ""
	for _, s := range r.steps[max(len(r.steps)-25, 0):] {
		steps += s.String() + "\n"
	}
	r.t.Fatalf("%s, step %d: in shadow mode it is not as a real one\n%s\nconfig %s\nlast steps\n%s",
		r.name, len(r.steps), modelDifference(what, want, got), modelFields(r.given), steps)
}

func TestAShadowDoesWhatARealBreakerDoes(t *testing.T) {
	seen := map[string]int64{}
	runs := testenv.Repeat(300, 50)
	for seed := range uint64(runs) {
		r := newShadowRun(t, seed)
		for range 300 {
			r.step()
		}
		s := r.shadow.StatsNow()
		seen["opened"] += s.ShadowOpened
		seen["refused"] += s.ShadowRefused
		for _, c := range r.told.all {
			seen[fmt.Sprintf("%v to %v by %v", c.From, c.To, c.Origin())]++
		}
		require.Zero(t, s.Totals.Refused)
		require.Equal(t, breaker.Shadow, s.State)
	}
	for what, least := range map[string]int64{
		"opened": 1000, "refused": 5000, "closed to open by calls": 200, "closed to open by shared_counts": 5,
		"half_open to open by calls": 200, "half_open to open by clock": 20, "half_open to closed by calls": 10,
		"half_open to recovering by calls": 100, "recovering to open by calls": 10, "recovering to closed by calls": 3,
	} {
		require.GreaterOrEqual(t, seen[what], least*int64(runs)/300, "the steps have been dull: %s", what)
	}
}

// A shadow that Force starts is closed and has no counts at first. Nothing of this shadow remains
// after Release.
func TestAForcedShadowBeginsClosedAndEmpty(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 2}, t0)
	require.NoError(t, modelMakeCall(b, 0, breaker.Failure))
	b.ForceAt(modelTimeAt(1), breaker.Shadow, "")
	require.NoError(t, modelMakeCall(b, 1, breaker.Failure))
	require.Zero(t, b.StatsAt(modelTimeAt(1)).ShadowOpened, "the failure before is not of the shadow")
	held := requireAllowed(t, b, 2)
	require.NoError(t, modelMakeCall(b, 2, breaker.Failure))
	require.NoError(t, modelMakeCall(b, 3, breaker.Failure))
	s := b.StatsAt(modelTimeAt(3))
	require.Equal(t, []int64{1, 1}, []int64{s.ShadowOpened, s.ShadowRefused})
	b.ReleaseAt(modelTimeAt(4))
	require.False(t, held.RecordAt(modelTimeAt(4), breaker.Failure))
	b.ForceAt(modelTimeAt(5), breaker.Shadow, "")
	require.NoError(t, modelMakeCall(b, 5, breaker.Success))
	require.Equal(t, int64(1), b.StatsAt(modelTimeAt(5)).ShadowRefused, "the next shadow is closed")
}
