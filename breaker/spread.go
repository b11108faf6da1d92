package breaker

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// evenSequence is a sequence of numbers that fill a range evenly, however many of them are used:
// the multiples of the golden ratio, modulo 1 (Weyl 1916; Knuth, The Art of Computer Programming,
// volume 3, section 6.4). Random numbers would leave gaps and clusters. A nil evenSequence has only
// zeros.
type evenSequence struct{ state atomic.Uint64 }

// goldenRatio is the golden ratio minus 1, as a share of 2⁶⁴.
const goldenRatio = 0x9e3779b97f4a7c15

// next returns the next number of the sequence, from 0 to below d.
func (s *evenSequence) next(d time.Duration) time.Duration {
	if s == nil {
		return 0
	}
	return fractionOf(s.state.Add(goldenRatio), d)
}

// maxStretch returns the largest share by which the breaker lengthens a wait that a service asks
// for.
func (c *Config) maxStretch() float64 { return valueOr(c.CooldownJitter, 0.1, 0) }

// stretchTime returns the time until which a service asked all its clients to wait, made later by a
// share of the wait. The share is at least 0 and less than jitter. It is computed from the random
// number drawn.
func stretchTime(asked, at time.Duration, jitter float64, drawn uint64) time.Duration {
	if asked <= at || jitter == 0 {
		return asked
	}
	longest := math.MaxInt64 - asked // no overflow
	if most := jitter * (float64(asked) - float64(at)); most < float64(longest) {
		longest = time.Duration(most)
	}
	return asked + fractionOf(drawn, longest)
}

// stretchOfWait returns the longest time by which the breaker lengthens a wait that a service asks
// for at the time t. The number share says how much of this longest time is used.
func (b *Breaker) stretchOfWait(t time.Time, asked time.Duration) (longest time.Duration, share uint64) {
	jitter := b.phase.Load().rules.config.maxStretch()
	return stretchTime(asked, 0, jitter, math.MaxUint64) - asked, hashTime(t)
}

// fractionOf returns d · n / 2⁶⁴.
func fractionOf(n uint64, d time.Duration) time.Duration {
	whole, _ := bits.Mul64(n, uint64(d))
	return time.Duration(whole)
}

// hashTime returns a number whose bits all depend on all bits of the time, in nanoseconds (the
// finalizer of SplitMix64; Steele, Lea and Flood 2014). Breakers that open at different nanoseconds
// draw different numbers, and a replay draws the same ones again.
func hashTime(t time.Time) uint64 {
	z := uint64(t.UnixNano())
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
