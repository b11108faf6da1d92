package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// modelRun is a breaker and its model. After each step everything that both show must be equal, at
// the time of the step and at a later time.
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
	held     []*modelPair // calls in flight, and some whose results were recorded
	now      time.Duration
	begun    bool // a time was given
	sick     int  // how many of ten calls fail
	hands    int  // the largest number of steps by hand in a hundred steps
	steps    []modelStep
	counts   map[string]int // how often each event occurred
}

// modelPair is one call that was made both with the model and with the breaker.
type modelPair struct {
	n      int
	call   *modelCall
	permit *breaker.Permit
}

func newModelRun(t testing.TB, name string, draw func(int) int) *modelRun {
	r := &modelRun{t: t, name: name, draw: draw, counts: map[string]int{}}
	r.given = r.drawConfig()
	r.hands = modelPick(r, 0, 1, 11)
	require.NoError(t, r.given.Validate(), name)
	r.model = newModel(r.given)
	r.real = breaker.NewAt("model", r.told.attachTo(r.given), t0)
	return r
}

func modelPick[T any](r *modelRun, of ...T) T { return of[r.draw(len(of))] }

const ms = time.Millisecond

func (r *modelRun) drawConfig() (c breaker.Config) {
	c.FailureRate = modelPick(r, 0, 0, 0.25, 1.0/3, 0.57, 0.75, 1, breaker.Off)
	c.ConsecutiveFailures = modelPick(r, 0, 0, 0, 0, 2, 3, 5)
	if c.FailureRate != breaker.Off {
		c.FailureRun = modelPick(r, 0, 0, breaker.Off, 1, 2, 3, 5, 8)
	}
	c.MinCalls = modelPick(r, 1, 2, 3, 4, 5, 8, 0, 1)
	if c.FailureRun > 0 && r.draw(2) == 0 {
		c.MinCalls = 100 // so that no rate opens it first
	}
	if r.draw(2) == 0 {
		c.SlowCall = modelPick(r, 2*ms, 5*ms, 20*ms)
		c.SlowRate = modelPick(r, 0, 0.25, 0.75, 1, breaker.Off)
	}
	r.drawWindow(&c)
	c.Cooldown = modelPick(r, 10*ms, 10*ms, 30*ms, 100*ms, 0, breaker.Off)
	c.CooldownFactor = modelPick(r, 0, 1, 1.5, 2, 10)
	c.MaxCooldown = modelPick(r, 0, max(c.Cooldown, 5*time.Second), 4*max(c.Cooldown, 0))
	c.MaxRetryAfter, c.CooldownJitter = modelPick(r, 0, 40*ms, breaker.Off), breaker.Off
	c.Probes = modelPick(r, 1, 2, 3, 4, 5, 0)
	c.ProbeTimeout = modelPick(r, 10*ms, 30*ms, 0)
	c.Recovery = modelPick(r, breaker.Off, 20*ms, 20*ms, 100*ms, time.Second, 0)
	c.HalfOpenTimeout = modelPick(r, 0, 0, 15*ms, 80*ms)
	if r.draw(5) == 0 {
		c.Force = modelPick(r, breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow)
		c.ForceReason = modelPick(r, "", "maintenance")
	}
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

func (r *modelRun) drawWindow(c *breaker.Config) {
	if r.draw(3) == 0 {
		c.LastCalls = modelPick(r, 1, 2, 3, 5, 10)
		return
	}
	c.Window = modelPick(r, 100*ms, 20*ms, 50*ms, time.Second, 0)
	c.Buckets = modelPick(r, 1, 2, 3, 5, 10, 0)
}

// nextTime advances the time and returns it, or sometimes a stale time.
func (r *modelRun) nextTime() time.Duration {
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
	case !r.begun: // the first time given is not stale
	default:
		return modelPick(r, r.now-ms, r.now-5*ms, r.now-20*ms, r.now-200*ms, r.now-time.Minute, modelStale)
	}
	return r.now
}

// modelStale is the offset of the zero time, the most stale time there is.
const modelStale = -(1<<62 - 1)

func modelDate(at time.Duration) time.Time {
	if at == modelStale {
		return time.Time{}
	}
	return t0.Add(at)
}

// deadline returns a time at which something ends, or a nanosecond before or after.
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
		w := r.model.bucketLength()
		ends = append(ends, (r.now/w+1)*w)
	}
	return modelPick(r, ends...) + time.Duration(r.draw(3)-1)
}

// TestTheBreakerIsAsItsModel makes 280,000 random steps with 800 random configs, and
// requires that each kind of event occurred often enough.
// Scenario A44.
func TestTheBreakerIsAsItsModel(t *testing.T) {
	const steps = 350
	runs := testenv.Repeat(800, 150)
	seen := map[string]int{}
	for seed := range uint64(runs) {
		r := newModelRun(t, fmt.Sprintf("seed %d", seed), rand.New(rand.NewPCG(seed, 4)).IntN)
		for range steps {
			r.step()
		}
		r.countEvents(seen)
	}
	for what, least := range map[string]int{
		"allow": 50_000, "done": 30_000, "check": 5000, "reconfigure": 500, "late": 1000, "abandoned": 100,
		"refused open": 5000, "refused half_open": 1000, "refused forced_open": 1000,
		"shadow opened": 100, "shadow refused": 100, "3 rounds or more": 100,
		"closed to open by calls": 200, "closed to open by hand": 20, "closed to open by shared_counts": 10,
		"open to half_open by clock": 500, "open to closed by hand": 10,
		"half_open to open by calls": 200, "half_open to open by clock": 50, "half_open to open by hand": 20,
		"half_open to closed by calls": 50, "half_open to recovering by calls": 200,
		"recovering to closed by calls": 50, "recovering to open by calls": 50, "recovering to open by hand": 20,
		"recovering to closed by hand": 20, "recovering to shadow by hand": 10, "forced_open to recovering by hand": 1,
		"refused recovering": 1000, "overdue rounds": 100,
		"half_open to closed by hand":      10,
		"half_open to forced_open by hand": 10, "half_open to shadow by hand": 10,
		"a run with successes":          3,
		"forced_open to closed by hand": 10, "forced_open to open by hand": 10, "forced_open to half_open by hand": 10,
	} {
		require.GreaterOrEqual(t, seen[what], max(least*runs/800, 1), "the steps have been dull: %s", what)
	}
}

// countEvents counts what the run has done.
func (r *modelRun) countEvents(seen map[string]int) {
	for what, n := range r.counts {
		seen[what] += n
	}
	for _, c := range r.model.changes {
		seen[fmt.Sprintf("%v to %v by %v", c.From, c.To, c.Origin())]++
		if strings.Contains(c.Reason, " of the last ") && c.Counts.Successes > 0 {
			seen["a run with successes"]++
		}
	}
	seen["late"] += int(r.model.late)
	seen["overdue rounds"] += int(r.model.overdue)
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
