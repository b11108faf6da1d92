package places

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Even is a sequence of numbers that fill a range evenly, however many of them are used: see
// package breaker. The zero Even is ready for use, and safe for concurrent use.
type Even struct{ drawn atomic.Uint64 }

// goldenRatio is the golden ratio minus 1, as a share of 2⁶⁴.
const goldenRatio = 0x9e3779b97f4a7c15

// Next returns the next number of the sequence, from 0 to below d, which is not negative.
func (e *Even) Next(d time.Duration) time.Duration {
	part, _ := bits.Mul64(e.drawn.Add(goldenRatio), uint64(d))
	return time.Duration(part)
}
