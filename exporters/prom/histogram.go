package prom

import (
	"math"
	"sort"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weir-go/weir/stat"
)

// histogramSample is the histogram of a series in one scrape. It is written both as a native
// histogram and as a classic one with the bounds of the instrument. Prometheus takes the one it is
// configured for, and the text format has only the classic one.
type histogramSample struct {
	*series
	histogram stat.Histogram
}

func (s *histogramSample) Desc() *prometheus.Desc { return s.desc }

func (s *histogramSample) Write(out *dto.Metric) error {
	h := &s.histogram
	out.Label = s.labels
	out.Histogram = &dto.Histogram{
		SampleCount: new(uint64(h.Count())), SampleSum: &h.Sum, CreatedTimestamp: s.created,
		Bucket: classicBuckets(h, s.bounds),
		Schema: new(int32(h.Schema)), ZeroThreshold: &h.ZeroThreshold, ZeroCount: new(uint64(h.Zero)),
	}
	out.Histogram.PositiveSpan, out.Histogram.PositiveDelta = nativeBuckets(h)
	addExemplars(out.Histogram, h.Exemplars)
	return nil
}

// maxExemplar is how long the labels of an exemplar may be in OpenMetrics, in characters.
const maxExemplar = 128

// isValid reports whether an exemplar can be written, so that no source can make a scrape fail.
func isValid(e stat.Exemplar) bool {
	labels := "trace_id" + e.TraceID + "span_id" + e.SpanID
	return e.TraceID != "" && !math.IsNaN(e.Value) && utf8.ValidString(labels) && utf8.RuneCountInString(labels) <= maxExemplar
}

// addExemplars adds the exemplars. Each bucket of the classic histogram can have one exemplar, and
// gets the last one. The bucket without an upper bound is written only if it has an exemplar.
func addExemplars(out *dto.Histogram, list []stat.Exemplar) {
	for i := range list {
		if !isValid(list[i]) {
			continue
		}
		e := &dto.Exemplar{
			Label: []*dto.LabelPair{{Name: new("trace_id"), Value: &list[i].TraceID}},
			Value: &list[i].Value, Timestamp: timestamppb.New(list[i].Time),
		}
		if list[i].SpanID != "" {
			e.Label = append(e.Label, &dto.LabelPair{Name: new("span_id"), Value: &list[i].SpanID})
		}
		out.Exemplars = append(out.Exemplars, e)
		at := sort.Search(len(out.Bucket), func(n int) bool { return list[i].Value <= out.Bucket[n].GetUpperBound() })
		if at == len(out.Bucket) {
			out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: new(math.Inf(1)), CumulativeCount: out.SampleCount})
		}
		out.Bucket[at].Exemplar = e
	}
}

// classicBuckets returns the cumulative count at each bound. The text encoder adds the bucket
// without a bound.
func classicBuckets(h *stat.Histogram, bounds []float64) []*dto.Bucket {
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

// maxGap is how many empty buckets are cheaper to write than a new span.
const maxGap = 2

// nativeBuckets returns the spans of buckets that are written, each with its distance from the
// previous one, and the difference of each bucket's count from the previous one's.
func nativeBuckets(h *stat.Histogram) (spans []*dto.BucketSpan, deltas []int64) {
	deltas = make([]int64, 0, len(h.Counts))
	last, end := int64(0), 0 // the count of the last bucket written, and the index after it
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		gap := h.Offset + i - end
		if len(spans) == 0 || gap > maxGap {
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
		// Without a span, an empty histogram would be taken for a classic one.
		spans = []*dto.BucketSpan{{Offset: new(int32), Length: new(uint32)}}
	}
	return spans, deltas
}
