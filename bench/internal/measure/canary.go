package measure

import (
	"sync/atomic"
	"time"
)

// CanaryLimit is the most that [Canary] gives where two threads have two cores to themselves. Above it,
// what was measured on two threads at the time says more about the neighbours on the machine.
const CanaryLimit = 0.55

// Canary is the cost of an atomic add on two threads that share nothing, by the cost of one on a single
// thread: 0.5 where two cores are free, 1 where there is but one. It takes about as long as d.
func Canary(d time.Duration) float64 {
	var words [2]struct {
		word atomic.Int64
		_    [256]byte
	}
	add := func(i int) Loop {
		return func(n int) int {
			for range n {
				words[i].word.Add(1)
			}
			return n
		}
	}
	n := max(int(d/2)/int(5*time.Nanosecond), 1)
	alone, _ := Together(n, add(0)) // these loops cannot fail
	both, _ := Together(n, add(0), add(1))
	return both / alone
}
