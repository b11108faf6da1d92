package window

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/stat"
)

// Latency is an exponential histogram of durations. It has eight buckets per power of two, from
// 2⁻²⁰ s (a microsecond) to 2¹² s (68 minutes), so a quantile is known within 9 %. It is a plain
// value. The zero value means no calls.
//
// The buckets are those of Prometheus's native histograms with schema 3 and of OpenTelemetry's
// exponential histograms with scale 3. So it is exported without loss, and two of them add up
// exactly.
type Latency struct {
	// Counts is the number of calls per bucket. See Histogram for the bounds.
	Counts [bucketCount]int64 `json:"-"`
	// Sum is the sum of all durations in seconds, to the microsecond. A call in Over adds 2¹².
	Sum float64 `json:"sum"`
	// Max is the longest duration since the window was made.
	Max time.Duration `json:"max"`
	// Under is the number of calls in the first bucket that are shorter than its range.
	Under int64 `json:"under"`
	// Over is the number of calls in the last bucket that are longer than its range.
	Over int64 `json:"over"`
}

const (
	bucketCount = latency.Buckets
	firstBucket = latency.Lowest // Prometheus's number of the bucket Counts[0]
)

// Count returns the number of calls.
func (l Latency) Count() (n int64) {
	for _, c := range l.Counts {
		n += c
	}
	return n
}

// Mean returns the mean duration, or 0 if there were no calls.
func (l Latency) Mean() time.Duration {
	n := l.Count()
	if n == 0 {
		return 0
	}
	return fromSeconds(l.Sum / float64(n))
}

// Quantile returns the duration that a share q of the calls did not exceed, for q in 0..1. The
// result is an estimate. It assumes that the calls of a bucket are spread evenly over the bucket's
// exponential scale. It is 0 if there were no calls.
func (l Latency) Quantile(q float64) time.Duration {
	i, below, ok := l.bucketOfQuantile(q)
	if !ok {
		return 0
	}
	lower, upper := latency.Bound(firstBucket+i-1), latency.Bound(firstBucket+i)
	rank := max(clampShare(q)*float64(l.Count()), 0)
	part := (rank - float64(below)) / float64(l.Counts[i])
	estimate := lower * math.Pow(upper/lower, min(max(part, 0), 1))
	return min(fromSeconds(estimate), l.Max)
}

// bucketOfQuantile returns the bucket of the quantile q and the number of calls in the buckets
// below.
func (l Latency) bucketOfQuantile(q float64) (index int, below int64, ok bool) {
	n := l.Count()
	rank := min(max(int64(math.Ceil(clampShare(q)*float64(n))), 1), n) // a float64 may round n up
	for i, count := range l.Counts {
		if count > 0 && below+count >= rank {
			return i, below, true
		}
		below += count
	}
	return 0, 0, false
}

// Plus returns the calls of both histograms. The sum is exact. Max is the larger of the two.
func (l Latency) Plus(m Latency) Latency {
	for i, n := range m.Counts {
		l.Counts[i] += n
	}
	l.Sum += m.Sum
	l.Max = max(l.Max, m.Max)
	l.Under += m.Under
	l.Over += m.Over
	return l
}

// Histogram returns the durations in the form that exporters use. Calls in Under are counted in
// Zero of the result, and in no bucket. Over has no equivalent. Max is that of l, which may be
// older than the counts.
func (l Latency) Histogram() stat.Histogram {
	counts := l.Counts
	zero := min(l.Under, counts[0]) // Under is read a moment later and may be larger
	counts[0] -= zero
	first, end := 0, len(counts)
	for ; end > 0 && counts[end-1] == 0; end-- {
	}
	for ; first < end && counts[first] == 0; first++ {
	}
	return stat.Histogram{
		Schema: latency.Schema, Offset: firstBucket + first, Counts: append([]int64(nil), counts[first:end]...),
		Zero: zero, ZeroThreshold: latency.Bound(firstBucket - 1), Sum: l.Sum, Max: l.Max.Seconds(),
	}
}

// clampShare returns the nearest share in 0..1, and 0 for NaN.
func clampShare(q float64) float64 {
	if q > 0 {
		return min(q, 1)
	}
	return 0
}

// fromSeconds converts seconds, which are at most a few hours here, to a duration.
func fromSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
