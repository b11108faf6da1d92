package alert

import (
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// Counted is anything that counts its calls: a breaker, a gate, a window.
// Totals is called at every evaluation and has to be safe for concurrent use.
type Counted interface {
	Totals() window.Totals
}

// FailureRate is the share of calls in the last span that failed, in 0..1. Calls
// that a breaker refused count as failed ones: to the caller they are, and an
// open breaker must not silence the alert about the outage behind it. There is no
// data where there were no calls.
func FailureRate(of Counted, span time.Duration) Value {
	return share("failure rate", of, span, func(c window.Counts) (bad, calls int64) {
		return c.Failures + c.Refused, c.Calls() + c.Refused
	})
}

// SlowRate is the share of the finished calls in the last span that were slow, in
// 0..1. There is no data where there were none.
func SlowRate(of Counted, span time.Duration) Value {
	return share("slow rate", of, span, func(c window.Counts) (bad, calls int64) { return c.Slow, c.Calls() })
}

// Rate is the calls a second over the last span, refused ones among them. There is
// no data before the second evaluation; until the monitor has run for a whole
// span, the rate is over what it has seen.
func Rate(of Counted, span time.Duration) Value {
	v := viewed("calls a second", of, span, func(view *window.View, t time.Time) measurement {
		calls := offered(view.CountsAt(t))
		seen := view.CoverageAt(t) * span.Seconds()
		return measurement{Value: float64(calls) / seen, Calls: calls, OK: seen > 0}
	})
	v.counts = true
	return v
}

func offered(c window.Counts) int64 { return c.Calls() + c.Refused }

func share(name string, of Counted, span time.Duration, split func(window.Counts) (bad, calls int64)) Value {
	v := viewed(name, of, span, func(view *window.View, t time.Time) measurement {
		bad, calls := split(view.CountsAt(t))
		return measurement{Value: float64(bad) / float64(calls), Calls: calls, Bad: bad, OK: calls > 0}
	})
	v.counts, v.countsBad, v.high = true, true, 1
	return v
}

// viewed is a value over a view of its own. Its figures are not negative.
func viewed(name string, of Counted, span time.Duration, sample func(*window.View, time.Time) measurement) Value {
	v := Value{name: name + " over " + brief(span), high: math.Inf(1)}
	if of == nil {
		v.errs = append(v.errs, errors.New("its source of calls is nil"))
	}
	v.errs = append(v.errs, spanFaults(span)...)
	v.start = func() probe {
		feed := newFeed(of, viewShape(span))
		return single(v.name, func(t time.Time) measurement {
			feed.sample(t)
			return sample(feed.views[0], t)
		})
	}
	return v
}
