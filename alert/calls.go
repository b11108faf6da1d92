package alert

import (
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// Counted is anything that counts its calls, such as a breaker, a gate or a window. Totals returns
// the counts since it was made. It is called at every evaluation and has to be safe for concurrent
// use.
type Counted interface {
	Totals() window.Totals
}

// FailureRate is the share of the calls in the last span that failed, from 0 to 1. Calls that a
// breaker refused count as failed, as they are to the caller, so that an open breaker does not silence
// the alert about the outage behind it. There is no data if there were no calls.
func FailureRate(of Counted, span time.Duration) Value {
	return share("failure rate", of, span, func(c window.Counts) (bad, calls int64) {
		return c.Failures + c.Refused, c.Calls() + c.Refused
	})
}

// SlowRate is the share of the finished calls in the last span that were slow, from 0 to 1. There is
// no data if there were no finished calls.
func SlowRate(of Counted, span time.Duration) Value {
	return share("slow rate", of, span, func(c window.Counts) (bad, calls int64) { return c.Slow, c.Calls() })
}

// Rate is the number of calls per second in the last span, including those that a breaker refused.
// There is no data before the second evaluation. Until the monitor has run for a whole span, the rate
// is that of the time since the first evaluation.
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
