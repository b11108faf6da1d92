package rows

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/dev/bench/internal/measure"
)

// Floors returns basic operations of the machine. Code that reads the clock or counts cannot be
// cheaper.
func Floors() []Side {
	return []Side{sinceFloor(), nowFloor(), addFloor(), sinceAndAdd(), mutexFloor()}
}

// sinceFloor reads the clock once.
func sinceFloor() Side {
	return Side{"time.Since(epoch)", "one reading of the monotonic clock", func() measure.Loop {
		epoch := time.Now()
		return func(n int) (right int) {
			for range n {
				if time.Since(epoch) >= 0 {
					right++
				}
			}
			return right
		}
	}}
}

func nowFloor() Side {
	return Side{"time.Now()", "one reading of both clocks", func() measure.Loop {
		epoch := time.Now()
		return func(n int) (right int) {
			for range n {
				if !time.Now().Before(epoch) {
					right++
				}
			}
			return right
		}
	}}
}

func addFloor() Side {
	return Side{"atomic.Int64.Add", "one word, shared by all threads", func() measure.Loop {
		total := new(atomic.Int64)
		return func(n int) (right int) {
			for range n {
				if total.Add(1) > 0 {
					right++
				}
			}
			return right
		}
	}}
}

// sinceAndAdd has the lowest possible cost of code that counts calls over time.
func sinceAndAdd() Side {
	return Side{"time.Since + atomic.Add", "one reading of the clock and one atomic add", func() measure.Loop {
		epoch, total := time.Now(), new(atomic.Int64)
		return func(n int) (right int) {
			for range n {
				if time.Since(epoch) >= 0 && total.Add(1) > 0 {
					right++
				}
			}
			return right
		}
	}}
}

func mutexFloor() Side {
	return Side{"sync.Mutex Lock + Unlock", "one lock, shared by all threads", func() measure.Loop {
		var mu sync.Mutex
		total := 0
		return func(n int) (right int) {
			for range n {
				mu.Lock()
				total++
				if total > 0 {
					right++
				}
				mu.Unlock()
			}
			return right
		}
	}}
}
