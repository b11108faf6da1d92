package harm

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The search comes to the worst worlds faster than by chance, with a verdict that has one.
func TestClimbingMakesWorldsWorse(t *testing.T) {
	n, best, first := 0, 0.0, 0.0
	judge := func(f Found) Verdict {
		regret := f.Genes.number("mean") * f.Genes.number("elastic") * f.Genes.number("patience")
		best = max(best, regret)
		if n <= population {
			first = best
		}
		return Verdict{Class: Healthy, Regret: regret}
	}
	kept := 0
	climb(7, func() bool { n++; return n <= 800 }, judge, func(f Found) {
		kept++
		require.NoError(t, f.World.Validate())
		again := *f.Genes
		require.Equal(t, Describe(f.World), Describe(again.World()), "the genes are those of the world")
	})
	require.Less(t, first, 0.5)
	require.Greater(t, best, 0.95) // by chance, 1 of 40,000 worlds has 0.95
	require.Greater(t, kept, 50)
}

func TestAMutationDiffersInAFewNumbers(t *testing.T) {
	g := &Genes{Seed: 3}
	g.World()
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		child := g.mutate(r)
		child.World()
		require.NotEmpty(t, child.Set)
		require.LessOrEqual(t, len(child.Set), 4)
		for name, x := range child.Set {
			require.Contains(t, g.used, name)
			require.GreaterOrEqual(t, x, 0.0)
			require.Less(t, x, 1.0)
		}
	}
}
