package alert

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/window"
)

// Quantile is the latency in seconds that the share q of the calls in the last span did not exceed.
// For example, with q = 0.99 one call in a hundred took longer. It is within 9 % of the true
// latency, and the span is exact to a twelfth of its length. Without calls there is no data.
//
// A breaker, a gate and a window have the method LifetimeLatency. They return data if they are
// configured to keep latencies. LifetimeLatency is called at every evaluation and must be safe for
// concurrent use.
func Quantile(of interface{ LifetimeLatency() window.Latency }, q float64, span time.Duration) Value {
	v := Value{name: fmt.Sprintf("latency quantile %v over %s", q, shortText(span)), high: math.Inf(1), counts: true}
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	if math.IsNaN(q) || q < 0 || q > 1 {
		v.errs = append(v.errs, fmt.Errorf("the quantile is %v, must lie between 0 and 1", q))
	}
	v.errs = append(v.errs, spanErrors(span)...)
	v.id = newValueID(v.name, of, q)
	v.start = func() sampler {
		recent := latencyWindow{width: (span + latencyParts - 1) / latencyParts}
		return sampleOne(v.name, func(t time.Time) measurement {
			latency := recent.sample(t, of.LifetimeLatency())
			calls := latency.Count()
			return measurement{Value: latency.Quantile(q).Seconds(), Calls: calls, OK: calls > 0, why: noCalls}
		})
	}
	return v
}

// latencyParts is the number of parts of the window of a quantile. Each part with calls keeps a
// histogram of 2 kB.
const latencyParts = 12

// latencyWindow is a moving window over the lifetime histogram of a source. For each recent part,
// it keeps the counts at the moment when the part began.
type latencyWindow struct {
	width   time.Duration  // of a part
	epoch   time.Time      // of the first sample
	last    window.Latency // the latest sample
	counted window.Latency // since the first sample
	newest  int64          // the part of the latest sample
	starts  []*partStart   // the first is the start of the window
}

// partStart holds the counts at the moment when a part began.
type partStart struct {
	part    int64
	counted window.Latency
}

// sample returns the calls in the window that ends at t. total is the lifetime histogram at t.
func (l *latencyWindow) sample(t time.Time, total window.Latency) window.Latency {
	if l.epoch.IsZero() {
		l.epoch, l.starts, l.last = t, []*partStart{{}}, total
	}
	if part := int64(t.Sub(l.epoch) / l.width); part > l.newest {
		l.advance(part)
	}
	l.counted = l.counted.Plus(latencyIncrease(total, l.last))
	l.last = total
	return minus(l.counted, l.starts[0].counted)
}

// advance begins a part. All parts that were skipped since the latest sample began with the same
// counts, so they share one partStart. A part that began with the same counts as the previous part
// needs no partStart of its own.
func (l *latencyWindow) advance(part int64) {
	if l.starts[len(l.starts)-1].counted.Counts != l.counted.Counts {
		l.starts = append(l.starts, &partStart{l.newest + 1, l.counted})
	}
	l.newest = part
	expired := 0
	for expired+1 < len(l.starts) && l.starts[expired+1].part <= part-latencyParts+1 {
		expired++
	}
	l.starts = slices.Delete(l.starts, 0, expired)
}

// latencyIncrease returns what was counted between two readings of a histogram. If a count has
// fallen, the histogram was reset, and everything in it is new.
func latencyIncrease(now, old window.Latency) window.Latency {
	for i, n := range old.Counts {
		if now.Counts[i] < n {
			return now
		}
	}
	return minus(now, old)
}

// minus subtracts the counts, which are all that a quantile is computed from.
func minus(now, old window.Latency) window.Latency {
	for i, n := range old.Counts {
		now.Counts[i] -= n
	}
	return now
}
