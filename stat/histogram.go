package stat

import (
	"iter"
	"math"
	"time"
)

// Histogram is a distribution of values over exponential buckets, which are those of Prometheus's
// native histograms and of OpenTelemetry's exponential histograms. It is a plain value. A receiver
// may keep it, and nothing changes its Counts. The zero value means no values.
type Histogram struct {
	// Schema is Prometheus's schema and OpenTelemetry's scale, from −4 to 8. There are 2^Schema
	// buckets per power of two.
	Schema int
	// Offset is Prometheus's number of the bucket Counts[0]. Bucket i holds values above base^(i−1)
	// and up to base^i, where base is 2^(2^−Schema). OpenTelemetry numbers it i−1.
	Offset int
	// Counts is the number of values per bucket, in ascending order.
	Counts []int64
	// Zero is the number of values up to ZeroThreshold, which are in no bucket.
	Zero int64
	// ZeroThreshold is at most the lower bound of Counts[0].
	ZeroThreshold float64
	// Sum is the sum of all values.
	Sum float64
	// Max is the largest value, or 0 if it is not known.
	Max float64
	// Exemplars are some of the values, in ascending order.
	Exemplars []Exemplar
}

// Exemplar is a value of a [Histogram] with the trace that it was measured in.
type Exemplar struct {
	Value float64
	// Time is when it was measured.
	Time time.Time
	// TraceID and SpanID are in hexadecimal digits. SpanID may be empty.
	TraceID, SpanID string
}

// Count returns the number of values.
func (h Histogram) Count() int64 {
	n := h.Zero
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Below yields each of the ascending bounds with the number of values up to it. A bound that is not
// a power of two is moved down to the next bound of a bucket.
func (h Histogram) Below(bounds []float64) iter.Seq2[float64, int64] {
	return func(yield func(float64, int64) bool) {
		n, i := h.Zero, 0
		for _, b := range bounds {
			for last := lastBucketUpTo(b, h.Schema); i < len(h.Counts) && h.Offset+i <= last; i++ {
				n += h.Counts[i]
			}
			if !yield(b, n) {
				return
			}
		}
	}
}

// lastBucketUpTo returns the number of the last bucket whose upper bound is at most b, which is
// above
// 0. If b is a power of two, no rounding error can choose the bucket beside it.
func lastBucketUpTo(b float64, schema int) int {
	frac, exp := math.Frexp(b)
	power := exp - 1 // b is 2·frac times 2^power, 2·frac in [1, 2)
	if schema <= 0 {
		return power >> -schema
	}
	return power<<schema + int(math.Log2(2*frac)*float64(int(1)<<schema))
}
