package measure

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Plan says how long to measure.
type Plan struct {
	Rounds int           // how often the two sides take turns
	Each   time.Duration // how long one turn of one side takes, about
}

// Comparison is what came of two sides that took turns: one figure a round.
type Comparison struct {
	Ours   []float64 // ns
	Theirs []float64 // ns
	Ratio  []float64 // ours by theirs
	Least  []float64 // the machine's share of ours, by theirs: for information; only for [Threads]
	Canary []float64 // see [Canary]; only for [Threads]
}

// Best is the ratio of the quickest turns. What else runs on the machine only ever adds to a turn, so of many short
// ones the quickest were left alone, however busy it is; but how much the ratio may be off is not known.
func (c Comparison) Best() float64 { return slices.Min(c.Ours) / slices.Min(c.Theirs) }

// Compare lets the two sides take turns. On two threads it asks the machine too what it can do: the canary, and what
// part of ours is its own, if least says so.
func (p Plan) Compare(m Mode, ours, theirs, least Loop) (c Comparison, err error) {
	counts := [2]int{}
	for i, loop := range []Loop{ours, theirs} {
		if counts[i], err = m.Enough(loop, p.Each); err != nil {
			return c, side(i, err)
		}
	}
	runtime.GC()
	for range p.Rounds {
		if err := c.round(m, counts, ours, theirs); err != nil {
			return c, err
		}
		if m != Threads {
			continue
		}
		c.Canary = append(c.Canary, Canary(p.Each/4))
		if least != nil {
			ns, _ := m.Cost(least, counts[0]) // which cannot fail
			c.Least = append(c.Least, ns/c.Theirs[len(c.Theirs)-1])
		}
	}
	return c, nil
}

// Cost is what a piece of work costs by itself.
func (p Plan) Cost(m Mode, loop Loop) (Spread, error) {
	n, err := m.Enough(loop, p.Each)
	if err != nil {
		return Spread{}, err
	}
	var costs []float64
	for range p.Rounds {
		ns, err := m.Cost(loop, n)
		if err != nil {
			return Spread{}, err
		}
		costs = append(costs, ns)
	}
	return SpreadOf(costs), nil
}

func (c *Comparison) round(m Mode, counts [2]int, ours, theirs Loop) error {
	a, err := m.Cost(ours, counts[0])
	if err != nil {
		return side(0, err)
	}
	b, err := m.Cost(theirs, counts[1])
	if err != nil {
		return side(1, err)
	}
	c.Ours, c.Theirs, c.Ratio = append(c.Ours, a), append(c.Theirs, b), append(c.Ratio, a/b)
	return nil
}

func side(i int, err error) error {
	return fmt.Errorf("%s: %w", [...]string{"ours", "theirs"}[i], err)
}
