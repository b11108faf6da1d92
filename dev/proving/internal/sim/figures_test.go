package sim_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// outageWorld is a service that is down from 10 s until 20 s.
func outageWorld() sim.World {
	trouble := sim.Span{From: 10 * time.Second, To: 20 * time.Second}
	return sim.World{
		Service: sim.Service{Servers: 100, Time: sim.Constant(50 * time.Millisecond), Queue: 100},
		Faults:  []sim.Fault{{Span: trouble, Down: true}},
		Clients: []sim.Client{{Rate: 200, Timeout: time.Second}},
		For:     40 * time.Second,
		Trouble: trouble,
	}
}

var errRefused = errors.New("refused")

// switchGuard refuses all calls while it is off.
type switchGuard struct {
	off      func(sinceMade time.Duration) bool
	made     time.Time
	openings atomic.Int64 // 1 after it was turned off
}

func (g *switchGuard) Call(ctx context.Context, f func(context.Context) error) error {
	if g.off(time.Since(g.made)) {
		g.openings.Store(1)
		return errRefused
	}
	return f(ctx)
}

func (g *switchGuard) Refusal(err error) (time.Duration, bool) { return 0, errors.Is(err, errRefused) }

func (g *switchGuard) Openings() int { return int(g.openings.Load()) }

func refusesWhile(off func(time.Duration) bool) sim.Maker {
	return sim.Maker{Name: "switch", New: func(sim.Setting) sim.Guard {
		return &switchGuard{off: off, made: time.Now()}
	}}
}

func TestAServiceThatNeverFails(t *testing.T) {
	w := outageWorld()
	w.Faults = nil
	f := sim.Run(w, sim.None(), 1)
	require.Equal(t, f.Offered, f.Good)
	require.Equal(t, f.OfferedMeanwhile, f.GoodMeanwhile)
	require.Equal(t, f.OfferedAfter, f.GoodAfter)
	require.Equal(t, f.Offered, f.Sent)
	require.Equal(t, time.Duration(f.Offered)*50*time.Millisecond, f.Worked)
	require.Zero(t, f.Wasted)
	require.Zero(t, f.BadSentBeforeOpen)
	require.Zero(t, f.UntilBack)
	require.Negative(t, f.UntilProtected)
	require.Equal(t, 50*time.Millisecond, f.Wait)
	require.Equal(t, 50*time.Millisecond, f.Slowest)
}

func TestAGuardThatRefusesAll(t *testing.T) {
	f := sim.Run(outageWorld(), refusesWhile(func(time.Duration) bool { return true }), 1)
	require.Equal(t, f.Offered, f.Refused)
	require.Equal(t, f.OfferedMeanwhile, f.RefusedMeanwhile)
	require.Equal(t, f.Offered-f.OfferedMeanwhile, f.FalseRefusals)
	require.Equal(t, f.OfferedUnhurried, f.RefusedUnhurried)
	require.Zero(t, f.Sent)
	require.Zero(t, f.Crowd)
	require.Zero(t, f.Wait)
	require.Zero(t, f.UntilProtected)
	require.Negative(t, f.UntilBack)
	require.Equal(t, 1, f.Openings)
	require.Zero(t, f.OpeningsMeanwhile, "it was open before")
}

func TestAGuardThatLetsAllThrough(t *testing.T) {
	f := sim.Run(outageWorld(), sim.None(), 1)
	require.Zero(t, f.Refused)
	require.Equal(t, f.OfferedMeanwhile, f.SentMeanwhile)
	require.Equal(t, f.OfferedMeanwhile, f.FailedMeanwhile)
	// Calls that are being served when the outage begins fail too: 200 per second for 50 ms.
	require.InDelta(t, f.OfferedMeanwhile+10, f.Failed, 13)
	require.Equal(t, f.OfferedMeanwhile, f.BadSentBeforeOpen)
	require.Negative(t, f.UntilProtected)
	require.Zero(t, f.UntilBack)
	require.Zero(t, f.Openings)
}

func TestAGuardThatIsLate(t *testing.T) {
	late := refusesWhile(func(at time.Duration) bool {
		return at >= 12340*time.Millisecond && at < 23210*time.Millisecond
	})
	f := sim.Run(outageWorld(), late, 1)
	// A second counts if at most half of its calls are sent, so it may begin half a second earlier.
	require.InDelta(t, 1840*time.Millisecond, f.UntilProtected, float64(100*time.Millisecond))
	// A second counts if 80 % of its calls are good, so it may begin 0.2 s earlier.
	require.InDelta(t, 3010*time.Millisecond, f.UntilBack, float64(100*time.Millisecond))
	require.InDelta(t, 200*2.34, f.SentMeanwhile, 4*22)
	require.Equal(t, f.SentMeanwhile, f.BadSentBeforeOpen)
	require.InDelta(t, 200*3.21, f.FalseRefusals, 4*26)
	require.Equal(t, f.FalseRefusals, f.OfferedAfter-f.GoodAfter)
	require.Equal(t, f.Refused, f.RefusedMeanwhile+f.FalseRefusals)
	require.Equal(t, 1, f.Openings)
	require.Equal(t, 1, f.OpeningsMeanwhile)
}

func TestTheWarmupIsLeftOut(t *testing.T) {
	w := outageWorld()
	all := sim.Run(w, sim.None(), 1)
	w.Warmup = 15500 * time.Millisecond
	f := sim.Run(w, sim.None(), 1)
	require.Equal(t, make([]sim.Second, 15), f.Series[:15])
	require.Equal(t, all.Series[16:], f.Series[16:])
	sum := f.Series[15].Offered
	for _, s := range f.Series[16:] {
		sum += s.Offered
	}
	require.Equal(t, sum, f.Offered)
	require.Equal(t, sum, f.Sent)
	require.Equal(t, all.OfferedAfter, f.OfferedAfter)
}
