package window

import (
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/stat"
)

// Histogram returns the same in the words that exporters know, without loss but for
// Over. What is in Under is in no bucket there, and in Zero instead. Max is that of
// the Latency, which may be older than the values.
func (l Latency) Histogram() stat.Histogram {
	counts := l.Counts
	zero := min(l.Under, counts[0]) // of a moment a little later, it may be more
	counts[0] -= zero
	first, end := 0, len(counts)
	for ; end > 0 && counts[end-1] == 0; end-- {
	}
	for ; first < end && counts[first] == 0; first++ {
	}
	return stat.Histogram{
		Schema: latencySchema, Offset: latencyOffset + first, Counts: append([]int64(nil), counts[first:end]...),
		Zero: zero, ZeroThreshold: latency.Bound(latencyOffset - 1), Sum: l.Sum, Max: l.Max.Seconds(),
	}
}
