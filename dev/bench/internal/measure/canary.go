package measure

import (
	"sync/atomic"
	"time"
)

// CanaryLimit is the highest result of [Canary] if two threads have two cores to themselves. Above
// it, figures on two threads depend more on other programs on the machine than on the measured
// code.
const CanaryLimit = 0.55

// Canary returns the cost of an atomic add on two threads that share nothing, divided by its cost
// on one thread. The result is 0.5 if two cores are free, and 1 if only one is. Canary takes about
// d.
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
	alone, _ := RunTogether(n, add(0)) // these loops cannot fail
	both, _ := RunTogether(n, add(0), add(1))
	return both / alone
}
