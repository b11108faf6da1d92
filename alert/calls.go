package alert

import (
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// Counted is a source that counts its calls, such as a breaker, a gate or a window. Totals returns
// the lifetime counts. It is called at every evaluation and must be safe for concurrent use.
type Counted interface {
	Totals() window.Totals
}

// FailureRate is the share of failed calls among those of the last span, from 0 to 1. Calls refused
// by a breaker count as failed, so that an open breaker does not silence the alert about the outage
// that opened it. Without calls there is no data.
func FailureRate(of Counted, span time.Duration) Value {
	return shareOfCalls("failure rate", of, span, func(c window.Counts) (bad, calls int64) {
		return c.Failures + c.Refused, withRefused(c)
	})
}

// SlowRate is the share of slow calls among those that finished in the last span, from 0 to 1.
// Without finished calls there is no data.
func SlowRate(of Counted, span time.Duration) Value {
	return shareOfCalls("slow rate", of, span, func(c window.Counts) (bad, calls int64) { return c.Slow, c.Calls() })
}

// Rate is the number of calls per second in the last span, including those refused by a breaker.
// There is no data before the second evaluation. Until the monitor has run for a whole span, Rate
// is taken over the time since the first evaluation.
func Rate(of Counted, span time.Duration) Value {
	v := overSpan("calls per second", of, span, func(v view, t time.Time) measurement {
		calls := withRefused(v.CountsAt(t))
		seen := v.coverage(t) * span.Seconds()
		return measurement{Value: float64(calls) / seen, Calls: calls, OK: seen > 0, why: tooEarly}
	})
	v.counts = true
	return v
}

// withRefused returns the number of calls including the refused ones, which Counts.Calls omits.
func withRefused(c window.Counts) int64 { return c.Calls() + c.Refused }

func shareOfCalls(name string, of Counted, span time.Duration, split func(window.Counts) (bad, calls int64)) Value {
	v := overSpan(name, of, span, func(v view, t time.Time) measurement {
		bad, calls := split(v.CountsAt(t))
		return measurement{Value: float64(bad) / float64(calls), Calls: calls, Bad: bad, OK: calls > 0, why: noCalls}
	})
	v.counts, v.countsBad, v.high = true, true, 1
	return v
}

// overSpan returns a value that is not negative and is computed from the calls in the last span.
func overSpan(name string, of Counted, span time.Duration, measure func(view, time.Time) measurement) Value {
	v := Value{name: name + " over " + shortText(span), high: math.Inf(1)}
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	v.errs = append(v.errs, spanErrors(span)...)
	v.id = newValueID(v.name, of, 0)
	v.start = func() sampler {
		views := newViews(of, span)
		return sampleOne(v.name, func(t time.Time) measurement {
			return measure(views.sample(t)[0], t)
		})
	}
	return v
}
