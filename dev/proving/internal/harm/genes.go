package harm

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Genes are the numbers from 0 to 1 that decide about a world, by the names of what they decide. A
// number that is not in Set comes from the seed.
type Genes struct {
	Seed uint64
	Set  map[string]float64

	used map[string]float64
}

// number returns the number of a name.
func (g *Genes) number(name string) float64 {
	x, ok := g.Set[name]
	if !ok {
		h := g.Seed
		for _, c := range []byte(name) {
			h = (h ^ uint64(c)) * 0x100000001b3
		}
		x = rand.New(rand.NewPCG(h, g.Seed)).Float64()
	}
	if g.used == nil {
		g.used = map[string]float64{}
	}
	g.used[name] = x
	return x
}

// between returns a value from low to high, all equally likely.
func (g *Genes) between(name string, low, high float64) float64 {
	return rounded(low + (high-low)*g.number(name))
}

// log returns a value from low to high, with equally likely logarithms.
func (g *Genes) log(name string, low, high float64) float64 {
	if high <= low {
		return rounded(low)
	}
	return rounded(low * math.Pow(high/low, g.number(name)))
}

// time is like log, for durations.
func (g *Genes) time(name string, low, high time.Duration) time.Duration {
	return roundedTime(time.Duration(g.log(name, float64(low), float64(high))))
}

// count is like log, for whole numbers.
func (g *Genes) count(name string, low, high int) int {
	return min(int(float64(low)*math.Pow(float64(high+1)/float64(low), g.number(name))), high)
}

// chance returns true with probability p.
func (g *Genes) chance(name string, p float64) bool { return g.number(name) < p }

// choice returns the index of one of several weights, which add up to 1.
func (g *Genes) choice(name string, weights ...float64) int {
	x := g.number(name)
	for i, w := range weights {
		if x < w {
			return i
		}
		x -= w
	}
	return len(weights) - 1
}

// mutate returns genes of which some differ. World must have used g.
func (g *Genes) mutate(r *rand.Rand) *Genes {
	names := make([]string, 0, len(g.used))
	for name := range g.used {
		names = append(names, name)
	}
	slices.Sort(names)
	child := &Genes{Seed: g.Seed, Set: map[string]float64{}}
	maps.Copy(child.Set, g.Set)
	for range 1 + r.IntN(4) {
		name := names[r.IntN(len(names))]
		x := g.used[name] + 0.15*r.NormFloat64()
		if r.IntN(4) == 0 {
			x = r.Float64()
		}
		child.Set[name] = min(max(x, 0), 1-1e-9)
	}
	return child
}

// rounded returns x with three digits, so that files are easy to read.
func rounded(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return y
}

func roundedTime(d time.Duration) time.Duration {
	return time.Duration(math.Round(rounded(float64(d))))
}
