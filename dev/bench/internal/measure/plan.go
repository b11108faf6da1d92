package measure

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Plan is how long to measure.
type Plan struct {
	Rounds int           // the number of turns of each side
	Each   time.Duration // the approximate duration of one turn of one side
	Allocs int           // the number of calls over which allocations are counted
}

// Comparison has the results of two sides that took turns, with one value per round.
type Comparison struct {
	Weir   []float64 // ns
	Peer   []float64 // ns
	Ratio  []float64 // Weir / Peer
	Canary []float64 // see [Canary]; only for [Threads]
}

// Best returns the ratio of the fastest turns. Other programs only ever make a turn slower, so the
// fastest of many short turns ran undisturbed, even on a busy machine. Best has no error bound.
func (c Comparison) Best() float64 { return slices.Min(c.Weir) / slices.Min(c.Peer) }

// Compare lets the two sides take turns. On two threads it also runs the canary.
func (p Plan) Compare(m Mode, weir, peer Loop) (c Comparison, err error) {
	counts := [2]int{}
	for i, loop := range []Loop{weir, peer} {
		if counts[i], err = m.CountFor(loop, p.Each); err != nil {
			return c, sideError(i, err)
		}
	}
	runtime.GC()
	for range p.Rounds {
		if err := c.round(m, counts, weir, peer); err != nil {
			return c, err
		}
		if m == Threads {
			c.Canary = append(c.Canary, Canary(p.Each/4))
		}
	}
	return c, nil
}

// Cost measures the cost of an operation without a peer.
func (p Plan) Cost(m Mode, loop Loop) (Spread, error) {
	n, err := m.CountFor(loop, p.Each)
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

func (c *Comparison) round(m Mode, counts [2]int, weir, peer Loop) error {
	a, err := m.Cost(weir, counts[0])
	if err != nil {
		return sideError(0, err)
	}
	b, err := m.Cost(peer, counts[1])
	if err != nil {
		return sideError(1, err)
	}
	c.Weir, c.Peer, c.Ratio = append(c.Weir, a), append(c.Peer, b), append(c.Ratio, a/b)
	return nil
}

func sideError(i int, err error) error {
	return fmt.Errorf("%s: %w", [...]string{"weir", "peer"}[i], err)
}
