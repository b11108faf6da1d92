package alert

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/window"
)

// Quantile is the time, in seconds, that the share q of the calls in the last span did not exceed:
// with 0.99, only the slowest one in a hundred took longer. It is within 9 % of the true time, and
// the span is exact to a twelfth of it. There is no data if there were no calls.
//
// A breaker, a gate and a window have the method LifetimeLatency, if they are configured to keep
// latencies. It is called at every evaluation and has to be safe for concurrent use.
func Quantile(of interface{ LifetimeLatency() window.Latency }, q float64, span time.Duration) Value {
	v := Value{name: fmt.Sprintf("latency quantile %v over %s", q, brief(span)), high: math.Inf(1), counts: true}
	if of == nil {
		v.errs = append(v.errs, errors.New("its source of latencies is nil"))
	}
	if math.IsNaN(q) || q < 0 || q > 1 {
		v.errs = append(v.errs, fmt.Errorf("its quantile is %v, must lie between 0 and 1", q))
	}
	v.errs = append(v.errs, spanFaults(span)...)
	v.start = func() probe {
		recent := latencies{width: (span + latencyParts - 1) / latencyParts}
		return single(v.name, func(t time.Time) measurement {
			window := recent.sample(t, of.LifetimeLatency())
			calls := window.Count()
			return measurement{Value: window.Quantile(q).Seconds(), Calls: calls, OK: calls > 0}
		})
	}
	return v
}

// latencyParts are the parts by which the window of a quantile moves. Each in which calls were
// counted keeps a histogram of two kilobytes.
const latencyParts = 12

// latencies is a moving window over the lifetime histogram of a source, as window.View
// is over totals: what was counted, and what that was when each recent part began.
type latencies struct {
	width   time.Duration
	epoch   time.Time      // of the first sample
	last    window.Latency // the latest sample
	counted window.Latency // since the first
	newest  int64          // the part of the latest sample
	marks   []*mark        // the first one is where the window begins
}

// mark is what had been counted when a part began.
type mark struct {
	part    int64
	counted window.Latency
}

// sample returns the calls of the window, which ends with the total at the time t.
func (l *latencies) sample(t time.Time, total window.Latency) window.Latency {
	if l.epoch.IsZero() {
		l.epoch, l.marks, l.last = t, []*mark{{}}, total
	}
	if part := int64(t.Sub(l.epoch) / l.width); part > l.newest {
		l.begin(part)
	}
	l.counted = l.counted.Plus(increase(total, l.last))
	l.last = total
	return less(l.counted, l.marks[0].counted)
}

// begin begins a part. The parts since the latest sample, which nobody looked at, began with what
// that had counted. A part that began with the same as the one before it needs no mark.
func (l *latencies) begin(part int64) {
	if l.marks[len(l.marks)-1].counted.Counts != l.counted.Counts {
		l.marks = append(l.marks, &mark{l.newest + 1, l.counted})
	}
	l.newest = part
	gone := 0
	for gone+1 < len(l.marks) && l.marks[gone+1].part <= part-latencyParts+1 {
		gone++
	}
	l.marks = slices.Delete(l.marks, 0, gone)
}

// increase returns what was counted between two readings of one histogram. If any of its counts
// has fallen the histogram began anew, and all of it was counted since.
func increase(now, old window.Latency) window.Latency {
	for i, n := range old.Counts {
		if now.Counts[i] < n {
			return now
		}
	}
	return less(now, old)
}

// less returns the difference of the counts, which are all that a quantile is made of.
func less(now, old window.Latency) window.Latency {
	for i, n := range old.Counts {
		now.Counts[i] -= n
	}
	return now
}
