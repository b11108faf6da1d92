package neighbour

import (
	"time"

	"github.com/weir-go/weir/dev/bench/internal/measure"
)

// Case is a kind of object that two threads work on at the same time.
type Case struct {
	Name    string
	Machine bool // an operation of the machine, not of weir
	// returns loops on n objects, in the order in which they were created
	Make func(n int) []measure.Loop
}

// Cost is the cost of an operation, in nanoseconds of one thread.
type Cost struct {
	Alone float64        // one thread
	Same  measure.Spread // two threads on the same object
	Next  measure.Spread // two threads on neighbours; the spread is over several pairs
	Apart measure.Spread // two threads on distant objects; the spread is over several pairs
}

// Slowdown returns the cost with neighbours divided by the cost with distant objects. It is about 1
// if neighbours share no cache line.
func (c Cost) Slowdown() float64 { return c.Next.Median / c.Apart.Median }

// sharingSlowdown is the slowdown from which two objects count as sharing a cache line. With two
// free cores the noise is below a tenth, and words that share a line cost four times as much.
const sharingSlowdown = 1.3

// Sharing returns "share a line" if the slowdown shows a shared cache line, and otherwise "".
func (c Cost) Sharing() string {
	if c.Slowdown() < sharingSlowdown {
		return ""
	}
	return "share a line"
}

const (
	pairs = 12 // the number of pairs; each has its cache lines at different addresses
	turns = 5  // the number of turns per pair
	far   = 64 // the distance of distant objects
)

// Run measures the case. One turn of a pair takes about the given time.
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
		// new objects, because two threads on one object may have changed it permanently
		loops = c.Make(pairs + far + 1)
		if *distance.into, err = measurePairs(n, loops, distance.steps); err != nil {
			return cost, err
		}
	}
	return cost, nil
}

// measurePairs runs two threads on two loops whose objects have the given distance, for several
// pairs.
func measurePairs(n int, loops []measure.Loop, steps int) (measure.Spread, error) {
	var costs []float64
	for i := range pairs {
		var pair []float64
		for range turns {
			ns, err := measure.RunTogether(n, loops[i], loops[i+steps])
			if err != nil {
				return measure.Spread{}, err
			}
			pair = append(pair, 2*ns) // each thread did half of the operations
		}
		// The cost of a pair is the median turn. In the fastest turn the two threads may not have
		// run at the same time.
		costs = append(costs, measure.SpreadOf(pair).Median)
	}
	return measure.SpreadOf(costs), nil
}
