// Package tally counts calls in a moving window, by outcome. Package window, the breakers and the
// throttles count with it. Time comes as an offset from a moment that the owner chose.
package tally

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/ring"
	"github.com/weir-go/weir/internal/striped"
)

// Outcome is the result of a call, numbered as window.Outcome.
type Outcome uint8

// The outcomes of a call.
const (
	Success Outcome = iota
	Failure
	Ignored
)

// Each counter counts a pair of events, one in its low half and one in its high half, so that one
// atomic add counts a call and one load reads both numbers as of the same moment. Counters only
// grow. A carry from the low half into the high half is harmless, because only differences are
// read.
const (
	callsCounter  = iota // calls with a verdict; failures among them
	slowCounter          // slow calls; failures among them
	othersCounter        // ignored calls; refused calls
	counterCount         // how many counters there are
)

const (
	lowOne   = uint64(1)
	highOne  = uint64(1) << 32
	bothOnes = lowOne | highOne
)

// maxAge bounds how long a counter may grow before the difference is moved into 64-bit totals.
// Within that time, neither half of a difference comes to 2³²: a counter takes some 30 million adds
// per second, and all stripes of one together take fewer than 2 billion.
const maxAge = int64(time.Second)

// Calls counts calls in a window over time or over the last calls. All methods may be called from
// any number of goroutines.
//
// Recording a call takes one comparison and one atomic add, and another add if latency is tracked.
// The first call of each bucket, and of each second, takes the lock to roll the window on. Readers
// write nothing and take no lock: they read the checkpoint and the ring between two looks at their
// numbers, and read again if one of them has changed.
type Calls struct {
	slowAbove atomic.Int64 // a call that takes longer is slow, in nanoseconds
	// the window, if it is LastCalls; of the other fields only streak and rollAt are used then
	last    *lastCalls
	buckets int64 // in the window, including the current one
	// the offset from which a call must roll first, as the very first call must
	rollAt    atomic.Int64
	rolls     atomic.Uint64 // checkpoints[rolls&1] is current
	ring      *ring.Ring
	latency   atomic.Pointer[latency.Window] // made by the first roll, if timed
	cleanMark atomic.Uint32                  // badCalls when the window was last found clean
	timed     bool                           // latency is tracked

	// Fields that calls read are not on the cache line that every call writes. The end of the
	// checkpoints counts ignored and refused calls, and few calls use what follows.
	checkpoints [2]checkpoint
	mu          sync.Mutex // held to roll, and to use pause
	pause       [2]int64   // the offsets of the latest pause: see Pause
	_           [24]byte

	counters [counterCount]striped.Counter
	streak   atomic.Int64
}

// New returns an empty tally over time. Calls that take longer than slowAbove count as slow.
func New(width time.Duration, buckets int, slowAbove time.Duration) *Calls {
	c := &Calls{buckets: int64(buckets), ring: ring.New(int64(width), buckets, 2*counterCount)}
	c.rollAt.Store(math.MinInt64)
	c.SetSlow(slowAbove)
	return c
}

// NewLast returns an empty tally over the last n calls.
func NewLast(n int, slowAbove time.Duration) *Calls {
	c := &Calls{last: newLastCalls(n), ring: ring.New(1, 1, 1)}
	c.rollAt.Store(math.MinInt64)
	c.SetSlow(slowAbove)
	return c
}

// SetSlow changes the duration above which calls count as slow from now on.
func (c *Calls) SetSlow(above time.Duration) { c.slowAbove.Store(int64(above)) }

// TrackLatency makes the tally keep a histogram of latencies. It must be called before the first
// call is recorded.
func (c *Calls) TrackLatency() { c.timed = true }

// BeginAt makes the tally begin at the offset, which may be negative, and not at 0. It must be
// called before the first call is recorded.
func (c *Calls) BeginAt(at time.Duration) {
	if c.last == nil {
		c.ring.Restart(c.ring.Bucket(int64(at)), make([]int64, 2*counterCount))
	}
}

// Untimed is the duration of a call whose duration is not known. It is in no histogram.
const Untimed = time.Duration(math.MinInt64)

// Record counts a call that ended at the offset. streak is the number of consecutive failures, 0 if
// the call is not a failure. clean reports that the window is clean: RatesAndMarkClean has found it
// clean, and no call since then failed or was slow, this call included.
func (c *Calls) Record(at time.Duration, o Outcome, took time.Duration) (streak int64, clean bool) {
	if c.last != nil {
		c.note(int64(at))
		c.last.record(o, int64(took) > c.slowAbove.Load())
		return c.updateStreak(o), false
	}
	if int64(at) >= c.rollAt.Load() {
		c.roll(int64(at))
	}
	if o > Failure {
		c.counters[othersCounter].Add(lowOne)
		return 0, false
	}
	if l := c.latency.Load(); l != nil && took != Untimed {
		l.Record(took)
	}
	mark := bothOnes
	if o == Success {
		mark = lowOne
		c.counters[callsCounter].Add(lowOne)
	} else {
		c.counters[callsCounter].AddWord(bothOnes)
	}
	streak = c.updateStreak(o)
	// badCalls is read after the call was added. So if a success and a failure are recorded at the
	// same time, the later call sees the other one, and the caller that records the later call
	// judges both.
	clean = c.badCalls() == c.cleanMark.Load()
	if int64(took) > c.slowAbove.Load() {
		// The slow call is added after the call, and read before it. So a reader that sees a slow
		// call also sees the call.
		c.counters[slowCounter].AddWord(mark)
		clean = false
	}
	return streak, clean
}

// updateStreak counts a failure and returns the streak. A success ends it.
func (c *Calls) updateStreak(o Outcome) int64 {
	switch {
	case o == Failure:
		return c.streak.Add(1)
	case o == Success && c.streak.Load() != 0:
		c.streak.Store(0)
	}
	return 0
}

// badCalls changes with every failure and every slow call, which are never in stripes. The number
// repeats after 2³² such calls. That is harmless, because Record reports clean for none of these
// calls.
func (c *Calls) badCalls() uint32 {
	return uint32(c.counters[callsCounter].Word()>>32) + uint32(c.counters[slowCounter].Word())
}

// Refuse counts a call that was refused.
func (c *Calls) Refuse(at time.Duration) {
	if c.last != nil {
		c.note(int64(at))
		c.last.refuse()
		return
	}
	if int64(at) >= c.rollAt.Load() {
		c.roll(int64(at))
	}
	c.counters[othersCounter].Add(highOne)
}

// Streak returns the number of failures since the last success.
func (c *Calls) Streak() int64 { return c.streak.Load() }

// SetStreak sets what Streak returns, for a tally that continues another one.
func (c *Calls) SetStreak(n int64) { c.streak.Store(n) }

// Stripe stripes the count of calls now, without waiting for two of them to collide.
func (c *Calls) Stripe() { c.counters[callsCounter].Stripe() }
