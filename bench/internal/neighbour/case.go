package neighbour

import (
	"time"

	"github.com/weir-go/weir/bench/internal/measure"
)

// Case is something that two threads work on at once, each on one of its own.
type Case struct {
	Name    string
	Machine bool                       // what the machine does by itself, and nothing of ours
	Make    func(n int) []measure.Loop // n of them, in the order in which they were made
}

// Cost is what a piece of work costs, in nanoseconds of one thread.
type Cost struct {
	Alone float64        // one thread
	Same  measure.Spread // two threads on the same one
	Next  measure.Spread // two threads on neighbours, over several pairs
	Apart measure.Spread // two threads on two that lie far from each other, over several pairs
}

// Slowdown is what neighbours cost each other beyond what two threads cost each other anyway: 1 where they share no
// line.
func (c Cost) Slowdown() float64 { return c.Next.Median / c.Apart.Median }

// sharing is the slowdown from which on neighbours are said to share a line. Noise stays within a tenth where two
// cores are free, and words that do share one cost four times as much.
const sharing = 1.3

// Sharing puts the slowdown in words.
func (c Cost) Sharing() string {
	if c.Slowdown() < sharing {
		return ""
	}
	return "share a line"
}

const (
	pairs = 12 // how many pairs are measured, since where a line ends differs from one to the next
	turns = 5  // how often each is
	far   = 64 // how many lie between two that are far from each other
)

// Run measures the case, one turn of a pair for about as long as each.
func (c Case) Run(each time.Duration) (cost Cost, err error) {
	loops := c.Make(pairs + far + 1)
	n, err := measure.Serial.CountFor(loops[0], each)
	if err != nil {
		return cost, err
	}
	if cost.Alone, err = measure.Serial.Cost(loops[0], n); err != nil {
		return cost, err
	}
	for _, distance := range []struct {
		steps int
		into  *measure.Spread
	}{{0, &cost.Same}, {1, &cost.Next}, {far, &cost.Apart}} {
		loops = c.Make(pairs + far + 1) // anew, since two threads on the same one may have changed it for good
		if *distance.into, err = together(n, loops, distance.steps); err != nil {
			return cost, err
		}
	}
	return cost, nil
}

// together lets two threads work on two of the loops that lie so many steps from each other, for several pairs.
func together(n int, loops []measure.Loop, steps int) (measure.Spread, error) {
	var costs []float64
	for i := range pairs {
		var pair []float64
		for range turns {
			ns, err := measure.RunTogether(n, loops[i], loops[i+steps])
			if err != nil {
				return measure.Spread{}, err
			}
			pair = append(pair, 2*ns) // each thread did half of the work in that time
		}
		// Not the quickest: that would be the turn in which the two threads missed each other.
		costs = append(costs, measure.SpreadOf(pair).Median)
	}
	return measure.SpreadOf(costs), nil
}
