package producer

import (
	"iter"
	"slices"
	"sync"
	"time"
	"weak"

	"go.opentelemetry.io/otel/attribute"

	"github.com/weir-go/weir/stat"
)

// identity distinguishes one exported series from another.
type identity struct {
	instrument *stat.Instrument
	attributes attribute.Distinct
}

func (l *series) identity() identity { return identity{l.instrument, l.attributes.Equivalent()} }

// sumByIdentity sums the histograms of the same identity, in the order of the first of each.
func sumByIdentity(all iter.Seq2[series, stat.Histogram]) iter.Seq2[series, stat.Histogram] {
	type sum struct {
		series
		total stat.Histogram
	}
	return func(yield func(series, stat.Histogram) bool) {
		var sums []*sum
		known := map[identity]*sum{}
		for l, h := range all {
			s := known[l.identity()]
			switch {
			case s == nil:
				s = &sum{l, h}
				s.total.Counts = slices.Clone(h.Counts)
				known[l.identity()] = s
				sums = append(sums, s)
			case sameBuckets(s.total, h):
				addHistogram(&s.total, h)
				if l.created.Before(s.created) {
					s.created = l.created
				}
			}
		}
		for _, s := range sums {
			if !yield(s.series, s.total) {
				return
			}
		}
	}
}

func sameBuckets(a, b stat.Histogram) bool {
	return a.Schema == b.Schema && a.ZeroThreshold == b.ZeroThreshold
}

// addHistogram adds h to the sum. It may change the Counts of the sum, and does not change those of
// h.
func addHistogram(sum *stat.Histogram, h stat.Histogram) {
	sum.Zero += h.Zero
	sum.Sum += h.Sum
	sum.Max = max(sum.Max, h.Max)
	sum.Exemplars = slices.Concat(sum.Exemplars, h.Exemplars)
	if len(h.Counts) == 0 {
		return
	}
	if len(sum.Counts) == 0 {
		sum.Offset = h.Offset
	}
	if before := sum.Offset - h.Offset; before > 0 {
		sum.Counts, sum.Offset = slices.Concat(make([]int64, before), sum.Counts), h.Offset
	}
	if missing := h.Offset + len(h.Counts) - sum.Offset - len(sum.Counts); missing > 0 {
		sum.Counts = append(sum.Counts, make([]int64, missing)...)
	}
	for i, n := range h.Counts {
		sum.Counts[h.Offset-sum.Offset+i] += n
	}
}

// deltas holds the totals of the last collection, and those of series that it lacked but whose
// sources are alive: a source may be removed and added again. It forgets a series whose source is
// gone, so it never holds more than the sources of the program.
type deltas struct {
	mu   sync.Mutex
	last map[identity]exported
	at   time.Time // of the last collection
}

// exported is the totals of a series that were exported.
type exported struct {
	stat.Histogram
	source weak.Pointer[stat.Series]
	at     time.Time
}

// since returns the values that came between the last collection and now. A series that is new, or
// whose totals fell, begins with its totals.
func (d *deltas) since(all iter.Seq2[series, stat.Histogram], now time.Time) iter.Seq2[series, stat.Histogram] {
	return func(yield func(series, stat.Histogram) bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		next := map[identity]exported{}
		more := true
		for l, h := range all {
			kept := h
			kept.Counts = slices.Clone(h.Counts)
			next[l.identity()] = exported{kept, l.source, now}
			if !more {
				continue
			}
			s := l
			last, ok := d.last[l.identity()]
			if !ok {
				last.at = d.at
			}
			h.Exemplars = slices.DeleteFunc(slices.Clone(h.Exemplars), func(e stat.Exemplar) bool {
				return !isNew(e, last.at, now)
			})
			if ok && sameBuckets(last.Histogram, h) && includesCounts(h, last.Histogram) {
				newer := h.Exemplars
				h, s.created = subtractCounts(kept, last.Histogram), last.at
				h.Exemplars = newer
			}
			more = yield(s, h)
		}
		for id, old := range d.last {
			if _, ok := next[id]; !ok && old.source.Value() != nil {
				next[id] = old
			}
		}
		d.last, d.at = next, now
	}
}

// isNew reports whether an exemplar came after the last collection. If that was later than now, it
// was in another clock, such as that of a testing/synctest bubble. So is an exemplar from much
// later than now. The tolerance allows for corrections of the clock since the start of the program.
func isNew(e stat.Exemplar, last, now time.Time) bool {
	return (e.Time.After(last) || last.After(now)) && e.Time.Sub(now) < time.Hour
}

// countOf returns the number of values in the bucket with Prometheus's number i.
func countOf(h stat.Histogram, i int) int64 {
	if i -= h.Offset; i >= 0 && i < len(h.Counts) {
		return h.Counts[i]
	}
	return 0
}

// includesCounts reports whether no count of h is lower than it was.
func includesCounts(h, last stat.Histogram) bool {
	for i, n := range last.Counts {
		if countOf(h, last.Offset+i) < n {
			return false
		}
	}
	return h.Zero >= last.Zero && h.Sum >= last.Sum
}

// subtractCounts returns h without the values that last holds. The maximum of the others is not
// known.
func subtractCounts(h, last stat.Histogram) stat.Histogram {
	h.Counts = slices.Clone(h.Counts)
	for i := range h.Counts {
		h.Counts[i] -= countOf(last, h.Offset+i)
	}
	h.Zero -= last.Zero
	h.Sum -= last.Sum
	h.Max = 0
	return h
}
