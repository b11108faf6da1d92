package stat

import (
	"iter"
	"math"
)

// Histogram says how values are distributed: how many there were in each of a row
// of exponential buckets, which are those of Prometheus's native histograms and of
// OpenTelemetry's exponential ones. It is a plain value; whoever is given one may
// keep it, and nobody changes its Counts. The zero value means no values.
type Histogram struct {
	// Schema is Prometheus's schema and OpenTelemetry's scale, from −4 to 8: there
	// are 2^Schema buckets for each power of two.
	Schema int
	// Offset is Prometheus's number of the bucket Counts[0]. Bucket i holds what is
	// above base^(i−1) and not above base^i, where base is 2^(2^−Schema);
	// OpenTelemetry's number for it is i−1.
	Offset int
	// Counts has the values in each bucket, the lowest first.
	Counts []int64

	Zero          int64   // values that are not above ZeroThreshold, and in no bucket
	ZeroThreshold float64 // at most the lower bound of Counts[0]

	Sum float64 // of all values
	Max float64 // the largest of them; 0 where that is not known
}

// Count returns the number of values.
func (h Histogram) Count() int64 {
	n := h.Zero
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Below yields for each of the bounds, which ascend, how many values are not above
// it. One that is no power of two is moved down to the next bound of a bucket.
func (h Histogram) Below(bounds []float64) iter.Seq2[float64, int64] {
	return func(yield func(float64, int64) bool) {
		n, i := h.Zero, 0
		for _, b := range bounds {
			for last := bucketEndingBy(b, h.Schema); i < len(h.Counts) && h.Offset+i <= last; i++ {
				n += h.Counts[i]
			}
			if !yield(b, n) {
				return
			}
		}
	}
}

// bucketEndingBy returns the number of the last bucket whose upper bound is not
// above b, which is above 0. It is exact where b is a power of two.
func bucketEndingBy(b float64, schema int) int {
	frac, exp := math.Frexp(b)
	power := exp - 1 // b is 2·frac times 2^power, 2·frac in [1, 2)
	if schema <= 0 {
		return power >> -schema
	}
	return power<<schema + int(math.Log2(2*frac)*float64(int(1)<<schema))
}
