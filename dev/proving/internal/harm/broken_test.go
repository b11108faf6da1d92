package harm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/harm"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

var errRefused = errors.New("refused")

// brokenGuard is a guard that is broken on purpose. Only the driver of the simulation calls it.
type brokenGuard struct {
	refuses func(ctx context.Context) bool
	ended   func(ctx context.Context, err error)
}

func (g *brokenGuard) Begin(ctx context.Context) (done func(error), err error) {
	if g.refuses(ctx) {
		return nil, errRefused
	}
	return func(err error) { g.ended(ctx, err) }, nil
}

func (g *brokenGuard) Call(ctx context.Context, f func(context.Context) error) error {
	done, err := g.Begin(ctx)
	if err == nil {
		err = f(ctx)
		done(err)
	}
	return err
}

func (*brokenGuard) Refusal(err error) (time.Duration, bool) { return 0, errors.Is(err, errRefused) }
func (*brokenGuard) Openings() int                           { return 0 }

func nothing(context.Context, error) {}

// atRandom refuses 3 % of the calls.
func atRandom() *brokenGuard {
	r := rand.New(rand.NewPCG(1, 1))
	return &brokenGuard{func(context.Context) bool { return r.Float64() < 0.03 }, nothing}
}

// opensFor refuses all calls for a time after ten failures in a row, from any host or from one.
func opensFor(long time.Duration, oneHost bool) *brokenGuard {
	runs := map[int]int{}
	var until time.Time
	refuses := func(context.Context) bool { return time.Now().Before(until) }
	return &brokenGuard{refuses, func(ctx context.Context, err error) {
		host := 0
		if oneHost {
			host = sim.Host(ctx)
		}
		if runs[host]++; err == nil {
			runs[host] = 0
		}
		if runs[host] >= 10 {
			runs[host], until = 0, time.Now().Add(long)
		}
	}}
}

// The search finds each guard that is broken on purpose, and finds nothing about a guard that does
// nothing.
func TestTheSearchFindsGuardsThatAreBroken(t *testing.T) {
	broken := []brokenRow{
		{"refuses at random", atRandom, []string{"healthy", "mostly well", "stuck"}},
		{"never back", func() *brokenGuard { return opensFor(1000*time.Hour, false) }, []string{"stuck"}},
		{"late", func() *brokenGuard { return opensFor(90*time.Second, false) }, []string{"late"}},
		{"one bad host", func() *brokenGuard { return opensFor(20*time.Second, true) }, []string{"mostly well"}},
	}
	guards := []harm.Guard{{Maker: sim.None(), Bound: 0.05}}
	for _, b := range broken {
		guards = append(guards, harm.Guard{Bound: 0.05, Maker: sim.Maker{
			Name: b.name, New: func(sim.Setting) sim.Guard { return b.new() },
		}})
	}
	found := map[string]int{}
	for i := 0; i < 200 && len(guards) > 1; i++ {
		w := world(i)
		if w.Clients[0].Rate < 0.5 || w.Clients[0].Rate > 100 {
			continue // they take long to run, or end before a guard can be late
		}
		verdicts := harm.Judge(w, 1, guards)
		require.Empty(t, verdicts[0].Broken(), harm.Describe(w))
		for _, v := range verdicts[1:] {
			at := slices.IndexFunc(broken, func(b brokenRow) bool { return b.name == v.Guard.Name })
			if slices.ContainsFunc(v.Broken(), func(p string) bool { return slices.Contains(broken[at].want, p) }) {
				found[v.Guard.Name] = i
				guards = slices.DeleteFunc(guards, func(g harm.Guard) bool { return g.Name == v.Guard.Name })
			}
		}
	}
	t.Log(found)
	require.Len(t, found, len(broken), "found in worlds %v", found)
}

// brokenRow is a guard that is broken on purpose, and the promises of which it breaks one.
type brokenRow struct {
	name string
	new  func() *brokenGuard
	want []string
}
