package window

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/latency"
)

// Latency is how long calls took, as an exponential histogram: eight buckets for
// each power of two from 2⁻²⁰ s (a microsecond) to 2¹² s (68 minutes), so that a
// quantile is known within 9 %. It is a plain value; the zero value means no calls.
//
// The buckets are those of Prometheus's native histograms with schema 3 and of
// OpenTelemetry's exponential ones with scale 3, so it goes out without loss, and
// two of them add up exactly.
type Latency struct {
	Counts [latencyBuckets]int64 `json:"-"`     // calls by bucket: see Histogram
	Sum    float64               `json:"sum"`   // of all times, in seconds, to the microsecond; a time in Over adds 2¹²
	Max    time.Duration         `json:"max"`   // the longest since the window was made
	Under  int64                 `json:"under"` // of the first bucket, what is shorter than it reaches
	Over   int64                 `json:"over"`  // of the last bucket, what is longer than it reaches
}

// The histogram of a Latency.
const (
	latencyBuckets = latency.Buckets
	latencySchema  = latency.Schema // Prometheus's schema, OpenTelemetry's scale
	latencyOffset  = latency.Lowest // Prometheus's number of the bucket Counts[0]
)

// Count returns the number of calls.
func (l Latency) Count() (n int64) {
	for _, c := range l.Counts {
		n += c
	}
	return n
}

// Mean returns the mean time, and 0 where there were no calls.
func (l Latency) Mean() time.Duration {
	n := l.Count()
	if n == 0 {
		return 0
	}
	return seconds(l.Sum / float64(n))
}

// Quantile returns the time that the share q of the calls did not exceed, q in
// 0..1: estimated within the bucket it falls into, as if the bucket were filled
// evenly on its exponential scale. It is 0 where there were no calls.
func (l Latency) Quantile(q float64) time.Duration {
	i, below, ok := l.bucketAt(q)
	if !ok {
		return 0
	}
	lower, upper := latency.Bound(latencyOffset+i-1), latency.Bound(latencyOffset+i)
	rank := max(clampShare(q)*float64(l.Count()), 0)
	part := (rank - float64(below)) / float64(l.Counts[i])
	estimate := lower * math.Pow(upper/lower, min(max(part, 0), 1))
	return min(seconds(estimate), l.Max)
}

// bucketAt returns the index of the bucket that holds the call of rank q, and how many
// calls lie in the buckets below it.
func (l Latency) bucketAt(q float64) (index int, below int64, ok bool) {
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

// Plus returns the calls of both, which is exact: Max is that of the slower one.
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

// clampShare makes a share of 0..1 of anything; what is not a number becomes 0.
func clampShare(q float64) float64 {
	if q > 0 {
		return min(q, 1)
	}
	return 0
}

// seconds makes a time of a bound, which is never longer than a day.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
