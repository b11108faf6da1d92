package harm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/config"
	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// Found is a world with the verdicts of all guards.
type Found struct {
	Name     string
	Title    string // of a world of a file
	Lesson   string // how guards were misled in a world of a file
	Genes    *Genes // nil for a world of a file
	World    sim.World
	Seed     uint64
	Verdicts []Verdict
	Took     time.Duration
}

// Random judges n random worlds, whose seeds begin with seed, and calls done for each in order.
func Random(n int, seed uint64, gs []Guard, done func(Found)) {
	judgeAll(n, gs, func(i int) Found {
		g := &Genes{Seed: seed<<20 + uint64(i)}
		return Found{Name: name(seed, uint64(i)), Genes: g, World: g.World(), Seed: 1}
	}, done)
}

// judgeAll judges n worlds, as many at once as there are processors.
func judgeAll(n int, gs []Guard, world func(i int) Found, done func(Found)) {
	results := make([]chan Found, n)
	for i := range results {
		results[i] = make(chan Found, 1)
	}
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				f := world(i)
				start := time.Now()
				f.Verdicts = judgeNamed(f, gs)
				f.Took = time.Since(start)
				results[i] <- f
			})
		}
	})
	for _, r := range results {
		done(<-r)
	}
	wg.Wait()
}

// Given judges the given worlds, and calls done for each in order.
func Given(worlds []Found, gs []Guard, done func(Found)) {
	judgeAll(len(worlds), gs, func(i int) Found { return worlds[i] }, done)
}

func name(seed, i uint64) string { return fmt.Sprintf("%d/%d", seed, i) }

// judgeNamed judges a world. A panic, which is a fault of a guard, tells the world.
func judgeNamed(f Found, gs []Guard) []Verdict {
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("world %s (%s): %v", f.Name, Describe(f.World), p))
		}
	}()
	return Judge(f.World, f.Seed, gs)
}

// counts are the figures of a guard over several worlds.
type counts struct {
	of, broken              [3]int // by class
	ends, stuck, late, goal int
	regrets                 []float64 // in percent and in order, of the worlds that are judged
}

func count(all []Found, guard int) (c counts) {
	for _, f := range all {
		v := f.Verdicts[guard]
		c.of[v.Class]++
		add := func(n *int, yes bool) {
			if yes {
				*n++
			}
		}
		add(&c.broken[v.Class], v.Harmful)
		add(&c.ends, v.Ends > 0)
		add(&c.stuck, v.Stuck > 0)
		add(&c.late, v.Late)
		add(&c.goal, v.missesGoal())
		if v.judged() {
			c.regrets = append(c.regrets, 100*v.Regret)
		}
	}
	slices.Sort(c.regrets)
	return c
}

func (c counts) harmed() int { return c.broken[Healthy] + c.broken[MostlyWell] }

// regret returns a quantile of the regrets.
func (c counts) regret(p float64) float64 {
	if len(c.regrets) == 0 {
		return math.NaN()
	}
	return c.regrets[int(p*float64(len(c.regrets)-1))]
}

// Summary writes a table with one line for each guard.
func Summary(out io.Writer, all []Found) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var b strings.Builder
	b.WriteString("guard\tjudged\tharmed\thealthy\tmostly well\tstuck\tlate\tmedian %\tworst 1 %\tworst %\tworse in outages\n")
	for g, v := range all[0].Verdicts {
		c := count(all, g)
		fmt.Fprintf(&b, "%s\t%d of %d\t%d\t%d of %d\t%d of %d\t%d of %d\t%d of %d\t%.3g\t%.3g\t%.3g\t%d\n",
			v.Guard.Name, len(c.regrets), len(all), c.harmed(), c.broken[Healthy], c.of[Healthy], c.broken[MostlyWell],
			c.of[MostlyWell], c.stuck, c.ends, c.late, c.ends, c.regret(0.5), c.regret(0.99), c.regret(1), c.goal)
	}
	_, err := io.WriteString(w, b.String())
	return errors.Join(err, w.Flush())
}

// compareBadness orders the worse verdict first.
func compareBadness(a, b Verdict) int { return cmp.Compare(b.Badness(), a.Badness()) }

// Badness orders verdicts: the larger, the worse.
func (v Verdict) Badness() float64 {
	b := v.judgedRegret()
	if v.Harmful {
		b++
	}
	if v.Stuck > 0 {
		b += 0.5
	}
	if v.Late {
		b += 0.2
	}
	return b
}

// Worst writes the n worst worlds of each guard that breaks a promise in them.
func Worst(out io.Writer, all []Found, n int) error {
	var b strings.Builder
	for g, v := range all[0].Verdicts {
		bad := slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return len(f.Verdicts[g].Broken()) == 0 })
		slices.SortStableFunc(bad, func(x, y Found) int { return compareBadness(x.Verdicts[g], y.Verdicts[g]) })
		fmt.Fprintf(&b, "\n%s: %d worlds break a promise\n", v.Guard.Name, len(bad))
		for _, f := range bad[:min(n, len(bad))] {
			fmt.Fprintf(&b, "  %s: %s\n      %s\n", f.Name, Describe(f.World), f.Verdicts[g])
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// String returns the verdict in one line.
func (v Verdict) String() string {
	broken := "keeps its promises"
	if all := v.Broken(); len(all) > 0 {
		broken = "breaks " + strings.Join(all, ", ")
	}
	text := fmt.Sprintf("%s: regret %.3g %%, refused %.3g %%, %v, %.2g %% out", broken, 100*v.Regret, 100*v.Refused, v.Class, 100*v.Out)
	if v.Unjudged {
		text += fmt.Sprintf(", unjudged: %d calls", v.Calls)
	}
	if v.Stuck > 0 {
		text += fmt.Sprintf(", stuck with %d of %d seeds", v.Stuck, v.Ends)
	}
	if v.Back > 0 {
		text += fmt.Sprintf(", back after %v of %v", v.Back.Round(time.Second/10), v.Limit.Round(time.Second))
	}
	if v.missesGoal() {
		text += fmt.Sprintf(", loses %.3g %% in outages, %.3g × gobreaker", 100*v.Within, v.Worse)
	}
	return text
}

// Write writes a world as a file that cmd/prove reads.
func Write(out io.Writer, f Found) error {
	rows := []string{
		`{name: "weir.Config{}"}`,
		"{name: recommended, adaptive: true, breaker: {cooldown: 500ms}}",
	}
	return config.Write(out, cmp.Or(f.Title, f.Name), f.World, leastSeeds, f.Seed, rows, []string{guards.ByRate})
}
