package harm

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Climb makes worlds worse for a guard for a time: it begins with random worlds, and
// replaces the world that is the least bad of a small population by a mutation of another one. It
// calls better for each world that is worse than all of its ancestors.
func Climb(g Guard, seed uint64, long time.Duration, better func(Found)) {
	const population = 8
	r := rand.New(rand.NewPCG(seed, 1))
	var worst []Found
	start := time.Now()
	for i := uint64(0); time.Since(start) < long; i++ {
		genes := &Genes{Seed: seed<<20 + i}
		parent := -1
		// a quarter of the worlds are new, so that the search does not stay where it began
		if len(worst) == population && r.IntN(4) > 0 {
			parent = r.IntN(population)
			genes = worst[parent].Genes.mutate(r)
		}
		f := Found{Name: name(seed, i), Genes: genes, World: genes.World(), Seed: 1}
		f.Verdicts = judgeNamed(f, []Guard{g})
		bad := f.Verdicts[0].Badness()
		switch {
		case len(worst) < population:
			worst = append(worst, f)
		case parent >= 0 && bad > worst[parent].Verdicts[0].Badness():
			worst[parent] = f
		case parent < 0 && bad > worst[population-1].Verdicts[0].Badness():
			worst[population-1] = f
		default:
			continue
		}
		slices.SortStableFunc(worst, func(a, b Found) int {
			return compareBadness(a.Verdicts[0], b.Verdicts[0])
		})
		if len(f.Verdicts[0].Broken()) > 0 {
			better(f)
		}
	}
}
