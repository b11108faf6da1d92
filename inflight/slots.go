package inflight

import "sync/atomic"

// slots packs into one word the number of calls in flight, whether callers wait, and how many calls
// got a slot without a wait:
//
//	bits 0 to 20   calls in flight
//	bit 21         callers wait
//	bits 22 to 63  calls that got a slot at once, except uncounted ones, modulo 2^42
//
// They share a word so that a call takes one compare-and-swap at its start and one addition at its
// end. The result of the addition says whether callers wait. The same two operations also keep the
// count of calls up to date, from which the number of ended calls follows. While callers wait, bit
// 21 makes the lower bits larger than any limit. So the comparison with the limit also keeps new
// calls from overtaking waiters.
type slots struct {
	word   atomic.Uint64
	others atomic.Int64 // calls that got a slot and are not counted in word
}

const (
	waiting  = 1 << (sumShift - 1)
	oneCall  = 1 << sumShift
	lowBits  = oneCall - 1
	flyBits  = waiting - 1
	sumShift = 22
)

// occupy takes a slot unless callers wait, and returns the calls in flight then, or 0 if there is
// no slot.
func (s *slots) occupy(limit *atomic.Uint32) (inFlight uint32) {
	for {
		old := s.word.Load()
		n := uint32(old & lowBits)
		if n >= limit.Load() {
			return 0
		}
		if s.word.CompareAndSwap(old, old+oneCall+1) {
			return n + 1
		}
	}
}

// occupyUncounted is like occupy, but gotSlotAtOnce does not count the call.
func (s *slots) occupyUncounted(limit *atomic.Uint32) bool { return s.occupyOther(limit, lowBits) }

// occupyForWaiter is like occupy, but for the first waiter.
func (s *slots) occupyForWaiter(limit *atomic.Uint32) bool { return s.occupyOther(limit, flyBits) }

func (s *slots) occupyOther(limit *atomic.Uint32, mask uint64) bool {
	for {
		old := s.word.Load()
		n := uint32(old & mask)
		if n >= limit.Load() {
			return false
		}
		if s.word.CompareAndSwap(old, old+1) {
			s.others.Add(1)
			return true
		}
	}
}

// release ends a call and reports whether callers wait.
func (s *slots) release() bool { return s.word.Add(^uint64(0))&waiting != 0 }

func (s *slots) hasWaiters() bool { return s.word.Load()&waiting != 0 }

func (s *slots) setWaiters()   { s.word.Or(waiting) }
func (s *slots) clearWaiters() { s.word.And(^uint64(waiting)) }

func (s *slots) inFlight() int { return int(s.word.Load() & flyBits) }

// gotSlotAtOnce returns the number of calls that got a slot at once.
func (s *slots) gotSlotAtOnce() int64 { return int64(s.word.Load() >> sumShift) }

// endedCalls returns the number of calls that have ended.
func (s *slots) endedCalls() int64 {
	word := s.word.Load()
	return int64(word>>sumShift) + s.others.Load() - int64(word&flyBits)
}
