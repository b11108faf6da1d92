// Package latency has exponential histograms of durations, over a lifetime and over a moving
// window.
package latency

import (
	"math"
	"math/bits"
	"time"
)

// The buckets are those of Prometheus's native histograms with schema 3 and of OpenTelemetry's
// exponential histograms with scale 3: eight per power of two. Bucket i holds the seconds in
// (2^((i−1)/8), 2^(i/8)].
const (
	Schema          = 3
	Buckets         = 256  // up to 2¹² s, 68 minutes
	Lowest          = -159 // the bucket from 2⁻²⁰ s, about a microsecond, to 9 % more
	bucketsPerPower = 1 << Schema
)

// bounds are the upper bounds 2^(i/8 − 1), for i from 0 to 7, in the same float64s that Prometheus
// uses, which are off by up to 1.4 units in the last place.
var bounds = [bucketsPerPower]float64{
	0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
	0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711,
}

// Index returns the number of the bucket that holds seconds, which must be above 0 and finite.
func Index(seconds float64) int {
	frac, exp := math.Frexp(seconds)
	i := 0
	for half := bucketsPerPower / 2; half > 0; half /= 2 {
		// binary search for the number of bounds below frac
		if bounds[i+half-1] < frac {
			i += half
		}
	}
	if bounds[i] < frac {
		i++
	}
	return i + (exp-1)*bucketsPerPower
}

// Bound returns the upper bound of a bucket, in seconds.
func Bound(i int) float64 {
	power := i >> Schema // rounds down
	return math.Ldexp(bounds[i-power*bucketsPerPower], power+1)
}

// bucketOf returns the bucket of a duration, counted from Lowest. Durations below the first bucket
// are put into the first one, and those above the last bucket into the last one. It agrees with
// Index of the duration in seconds, but uses integers only, which is several times cheaper.
func bucketOf(nanos int64) int {
	length := bits.Len64(uint64(nanos))
	i := int(firstBuckets[length<<3|int(uint64(nanos)<<(64-length)>>60&7)])
	for i < Buckets-1 && nanos > longestInBucket[i] { // at most two steps
		i++
	}
	return i
}

// longestInBucket holds the longest duration of each bucket, in nanoseconds.
var longestInBucket = func() (t [Buckets]int64) {
	for i := range t {
		bound := Bound(Lowest + i)
		n := int64(bound * 1e9)
		for ; time.Duration(n).Seconds() > bound; n-- {
		}
		for ; time.Duration(n+1).Seconds() <= bound; n++ {
		}
		t[i] = n
	}
	return t
}()

// firstBuckets holds the bucket of the smallest number with the given length in bits and the given
// three bits after its first, which is as fine as the buckets are.
var firstBuckets = func() (t [64 << 3]uint8) {
	for i := 4 << 3; i < len(t); i++ { // before that, a few nanoseconds: the first bucket
		length, next := i>>3, int64(i&7)
		t[i] = t[i-1]
		smallest := (8 | next) << (length - 4)
		for int(t[i]) < Buckets-1 && smallest > longestInBucket[t[i]] {
			t[i]++
		}
	}
	return t
}()
