package conformance_test

import (
	"math"

	"github.com/weir-go/weir/limiter"
)

// bucket returns a TokenBucket that lacks the given number of tokens at the time at.
func bucket(c limiter.TokenBucketConfig, perSecond float64, at int64, missing float64) *limiter.TokenBucket {
	b := limiters.NewTokenBucket(c, nanoTime(max(at, 0)))
	if missing > 0 && c.Rate != limiter.Unlimited() {
		b.TakeAt(nanoTime(at+int64(math.Round((missing-1)*1e9/perSecond))), 1)
	}
	return b
}

// perSecond returns a rate that may be infinite.
func perSecond(n float64) limiter.Rate {
	if math.IsInf(n, 1) {
		return limiter.Unlimited()
	}
	return limiter.PerSecond(n)
}

// positiveInt returns n as an int, or 0 if it is not an integer above 0.
func positiveInt(n number) int {
	if n < 1 || n > 1<<31 || n != number(math.Trunc(float64(n))) {
		return 0
	}
	return int(n)
}

// timeGrid is the precision of the times of a sequence from the documents: see testdata/FORMATS.md.
type timeGrid string

// slack returns how far floats may be off: 0 for multiples of 1/512 s and dyadic rates, otherwise
// the error of a clock that is read as float64 seconds since 1970.
func (g timeGrid) slack(rate float64) float64 {
	if g == "exact" {
		return 0
	}
	return 1e-9 + 1e-6*rate
}
