package tally

import (
	"math"
	"math/bits"
	"time"
)

// Latencies are counted in exponential buckets of schema 3, as Prometheus's native
// histograms and OpenTelemetry's exponential ones have them: eight buckets for each
// power of two, bucket i holding the seconds in (2^((i−1)/8), 2^(i/8)].
const (
	Schema   = 3
	Buckets  = 256  // up to 2¹² s, 68 minutes
	Lowest   = -159 // the bucket from 2⁻²⁰ s, about a microsecond, to 9 % more
	perPower = 1 << Schema
)

// bounds are the upper bounds 2^(i/8 − 1), for i from 0 to 7, in the very float64s
// that Prometheus compares with, which are off by up to 1.4 units in the last place.
var bounds = [perPower]float64{
	0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
	0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711,
}

// Index returns the number of the bucket that holds so many seconds, which must be
// above 0 and finite.
func Index(seconds float64) int {
	frac, exp := math.Frexp(seconds)
	i := 0
	for half := perPower / 2; half > 0; half /= 2 { // how many bounds lie below frac
		if bounds[i+half-1] < frac {
			i += half
		}
	}
	if bounds[i] < frac {
		i++
	}
	return i + (exp-1)*perPower
}

// Bound returns the upper bound of a bucket, in seconds.
func Bound(i int) float64 {
	power := i >> Schema // rounds down
	return math.Ldexp(bounds[i-power*perPower], power+1)
}

// slot returns the place of a time among Buckets places: what is shorter or longer
// than they reach falls into the first or the last. It agrees with Index on the
// time's Seconds, by whole numbers and at a fraction of the price.
func slot(nanos int64) int {
	i := int(guesses[lead(nanos)])
	for i < Buckets-1 && nanos > ends[i] { // twice at the most
		i++
	}
	return i
}

// lead returns a number's length in bits and the three bits after its first, which
// is as fine as the buckets are.
func lead(n int64) int {
	length := bits.Len64(uint64(n))
	return length<<3 | int(uint64(n)<<(64-length)>>60&7)
}

// ends has the longest time in nanoseconds that falls into each place, but for
// the last.
var ends = func() (t [Buckets]int64) {
	for i := range t {
		n := int64(Bound(Lowest+i) * 1e9)
		for ; time.Duration(n).Seconds() > Bound(Lowest+i); n-- {
		}
		for ; time.Duration(n+1).Seconds() <= Bound(Lowest+i); n++ {
		}
		t[i] = n
	}
	return t
}()

// guesses has the place of the smallest number with each lead.
var guesses = func() (t [64 << 3]uint8) {
	for i := range t {
		length, next := i>>3, int64(i&7)
		if length < 4 { // a few nanoseconds: the first place
			continue
		}
		smallest := (8 | next) << (length - 4)
		for int(t[i]) < Buckets-1 && smallest > ends[t[i]] {
			t[i]++
		}
	}
	return t
}()
