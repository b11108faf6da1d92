package measure

import (
	"fmt"
	"sync"
	"time"
)

// Loop does one piece of work n times over and returns how often it came out as it should. It may be run by
// several goroutines at once, and then all of them share what it works on.
type Loop func(n int) (right int)

// Together runs the loops at the same time, each of them n times over, and returns nanoseconds by all pieces of work:
// the time from the start of all to the end of the last, divided by what they did together. It is an error if one
// piece of work did not come out as it should.
func Together(n int, loops ...Loop) (ns float64, err error) {
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
			return 0, fmt.Errorf("%d of %d came out as they should", right, n)
		}
	}
	return float64(took) / float64(n*len(loops)), nil
}
