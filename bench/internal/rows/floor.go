package rows

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/bench/internal/measure"
)

// Floors lists what the machine itself costs: nothing that tells the time or counts can be cheaper.
func Floors() []Side {
	return []Side{sinceFloor(), nowFloor(), addFloor(), sinceAndAdd(), mutexFloor()}
}

// sinceFloor is one reading of the clock.
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

// sinceAndAdd is what nothing that counts over time can be cheaper than.
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

// Write is a way to write a word.
type Write int

// The ways. What depends on the value that was there has to be swapped, and tried again where somebody else was first.
// Before an Add and a Swap the clock is read; Count is an Add that comes right after another write.
const (
	Add Write = iota
	Swap
	Count
)

// writing is what a call costs at least that makes such writes, each to a line of its own.
func writing(writes []Write) measure.Loop {
	lines, epoch := make([]struct {
		word atomic.Int64
		_    [120]byte
	}, len(writes)), time.Now()
	return func(n int) (right int) {
		for range n {
			done := 0
			for i, how := range writes {
				if how != Count && time.Since(epoch) < 0 {
					break
				}
				word := &lines[i].word
				if how != Swap {
					done += int(min(word.Add(1), 1)) // 1, unless it was not written
					continue
				}
				old := word.Load()
				for ; !word.CompareAndSwap(old, old+1); old = word.Add(0) {
				}
				done += int(min(old+1, 1))
			}
			if done == len(writes) {
				right++
			}
		}
		return right
	}
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
