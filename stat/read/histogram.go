package read

import (
	"math"
	"slices"

	"github.com/weir-go/weir/stat"
)

const (
	minSchema, maxSchema = -4, 8
	// above the buckets of all float64s, and within what backends can count.
	maxBucket = 300_000
)

// validValue reports whether backends accept the value. A counter counts up from 0, so no counter
// is negative, infinite or NaN. The method check checks the series itself.
func validValue(s *stat.Series, v float64) bool {
	return s == nil || s.Instrument == nil || s.Instrument.Kind != stat.Counter || v >= 0 && v <= math.MaxFloat64
}

// validHistogram reports whether backends accept the histogram.
func validHistogram(_ *stat.Series, h stat.Histogram) bool {
	if h.Schema < minSchema || h.Schema > maxSchema || h.Zero < 0 || !(h.ZeroThreshold >= 0) || math.IsInf(h.ZeroThreshold, 0) {
		return false
	}
	if h.Offset < -maxBucket || h.Offset > maxBucket || len(h.Counts) > 2*maxBucket {
		return false
	}
	return !slices.ContainsFunc(h.Counts, func(c int64) bool { return c < 0 })
}
