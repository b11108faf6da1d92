package prom

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-go/weir/stat"
)

// spread is the histogram of a line in one scrape, as a native histogram and as a
// classic one at the bounds of the instrument, together: Prometheus takes the one
// that it is set up for, and the text format has the classic one alone.
type spread struct {
	*line
	histogram stat.Histogram
}

func (s *spread) Desc() *prometheus.Desc { return s.desc }

func (s *spread) Write(out *dto.Metric) error {
	h := &s.histogram
	out.Label = s.labels
	out.Histogram = &dto.Histogram{
		SampleCount: new(uint64(h.Count())), SampleSum: &h.Sum, CreatedTimestamp: s.created,
		Bucket: classic(h, s.bounds),
		Schema: new(int32(h.Schema)), ZeroThreshold: &h.ZeroThreshold, ZeroCount: new(uint64(h.Zero)),
	}
	out.Histogram.PositiveSpan, out.Histogram.PositiveDelta = native(h)
	return nil
}

// classic counts up to each bound. The bucket without a bound is left to whoever
// writes the text.
func classic(h *stat.Histogram, bounds []float64) []*dto.Bucket {
	buckets, counts := make([]dto.Bucket, len(bounds)), make([]uint64, len(bounds))
	list := make([]*dto.Bucket, 0, len(bounds))
	for _, n := range h.Below(bounds) {
		i := len(list)
		counts[i] = uint64(n)
		buckets[i].UpperBound, buckets[i].CumulativeCount = &bounds[i], &counts[i]
		list = append(list, &buckets[i])
	}
	return list
}

// widestGap is how many empty buckets are cheaper to write than a new span.
const widestGap = 2

// native gives the spans of buckets that are written, by their distance from the
// last one, and each bucket's difference from the one before.
func native(h *stat.Histogram) (spans []*dto.BucketSpan, deltas []int64) {
	deltas = make([]int64, 0, len(h.Counts))
	last, end := int64(0), 0 // the count of the last bucket written, and the number after it
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		gap := h.Offset + i - end
		if len(spans) == 0 || gap > widestGap {
			spans = append(spans, &dto.BucketSpan{Offset: new(int32(gap)), Length: new(uint32)})
			gap = 0
		}
		for range gap {
			deltas = append(deltas, -last)
			last = 0
		}
		deltas = append(deltas, n-last)
		*spans[len(spans)-1].Length += uint32(gap + 1)
		last, end = n, h.Offset+i+1
	}
	if len(spans) == 0 && h.ZeroThreshold == 0 {
		// Without anything native in it, an empty histogram would pass for a classic one.
		spans = []*dto.BucketSpan{{Offset: new(int32), Length: new(uint32)}}
	}
	return spans, deltas
}
