package conformance_test

import (
	"math"

	"github.com/weir-go/weir/limiter"
)

// bucket is a TokenBucket that lacks so many tokens at a time.
func bucket(c limiter.TokenBucketConfig, perSecond float64, at int64, missing float64) *limiter.TokenBucket {
	b := limiter.NewTokenBucketAt(c, unix(max(at, 0)))
	if missing > 0 && c.Rate != limiter.Unlimited() {
		b.TakeAt(unix(at+int64(math.Round((missing-1)*1e9/perSecond))), 1)
	}
	return b
}

// perSecond is a rate that may be infinite.
func perSecond(n float64) limiter.Rate {
	if math.IsInf(n, 1) {
		return limiter.Unlimited()
	}
	return limiter.PerSecond(n)
}

// whole returns n as an int from 1 on, or 0 where it is none.
func whole(n number) int {
	if n < 1 || n > 1<<31 || n != number(math.Trunc(float64(n))) {
		return 0
	}
	return int(n)
}

// grid is how the times of a sequence from the documents lie.
type grid string

// slack is how far floats may be off: not at all for multiples of 1/512 s and dyadic rates, and otherwise
// as far as a clock that is read as float64 seconds since 1970.
func (g grid) slack(rate float64) float64 {
	if g == "exact" {
		return 0
	}
	return 1e-9 + 1e-6*rate
}
