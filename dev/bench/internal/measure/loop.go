package measure

import (
	"fmt"
	"sync"
	"time"
)

// Loop repeats one operation n times and returns how many repetitions had the expected result.
// Several goroutines may run it at the same time. They then work on the same object.
type Loop func(n int) (right int)

// RunTogether runs the loops at the same time, n operations each. It returns the nanoseconds per
// operation: the time from the start of all loops to the end of the last, divided by the operations
// of all loops. It returns an error if an operation had a different result than expected.
func RunTogether(n int, loops ...Loop) (ns float64, err error) {
	rights := make([]int, len(loops))
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i, loop := range loops {
		all.Go(func() {
			<-gate
			rights[i] = loop(n)
		})
	}
	began := time.Now()
	close(gate)
	all.Wait()
	took := time.Since(began)
	for _, right := range rights {
		if right != n {
			return 0, fmt.Errorf("%d of %d operations had the expected result", right, n)
		}
	}
	return float64(took) / float64(n*len(loops)), nil
}
