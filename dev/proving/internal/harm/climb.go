package harm

import (
	"math/rand/v2"
	"slices"
)

// Climb makes worlds worse for a guard as long as more returns true. It calls better for each world
// in which a promise is broken and that is worse than the world that it was made of.
func Climb(g Guard, seed uint64, more func() bool, better func(Found)) {
	judge := func(f Found) Verdict { return judgeNamed(f, []Guard{g})[0] }
	climb(seed, more, judge, func(f Found) {
		if len(f.Verdicts[0].Broken()) > 0 {
			better(f)
		}
	})
}

// population is the number of worlds that are made worse at the same time. Each one has its own
// history, so that one kind of harm does not displace all others.
const population = 8

// climb begins with random worlds. Three of four further ones are mutations: they replace the world
// that they were made of if they are worse. The others are random, and replace the least bad world
// if they are worse. It calls better for each world that it keeps.
func climb(seed uint64, more func() bool, judge func(Found) Verdict, better func(Found)) {
	r := rand.New(rand.NewPCG(seed, 1))
	var kept []Found
	for i := uint64(0); more(); i++ {
		genes, replaced := &Genes{Seed: seed<<20 + i}, population-1
		if len(kept) == population && r.IntN(4) > 0 {
			replaced = r.IntN(population)
			genes = kept[replaced].Genes.mutate(r)
		}
		f := Found{Name: name(seed, i), Genes: genes, World: genes.World(), Seed: 1}
		f.Verdicts = []Verdict{judge(f)}
		switch {
		case len(kept) < population:
			kept = append(kept, f)
		case compareBadness(f.Verdicts[0], kept[replaced].Verdicts[0]) < 0:
			kept[replaced] = f
		default:
			continue
		}
		slices.SortStableFunc(kept, func(a, b Found) int { return compareBadness(a.Verdicts[0], b.Verdicts[0]) })
		better(f)
	}
}
