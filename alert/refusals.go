package alert

import (
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Refusals is the number of calls in the last span that were refused by a breaker, a limiter or a
// throttle, by a gate's breaker and its limiter together, or by all members of a group. It is read
// from the metrics that the source exports. Calls that wait and are then allowed are not refused.
// The gates of a weir.Group share the refusal counts of their limiters, so pass the group to
// Refusals and not its gates.
//
// Until the monitor has run for a whole span the number is too low, so a Below condition has no
// data until then.
func Refusals(of stat.Source, span time.Duration) Value {
	v := Value{name: "number of refused calls over " + shortText(span), high: math.Inf(1)}
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	v.errs = append(v.errs, spanErrors(span)...)
	v.start = func() sampler {
		views := newViews(&refusalCounter{source: of}, span)
		return sampleOne(v.name, func(t time.Time) measurement {
			now := views.sample(t)[0]
			return measurement{Value: float64(now.CountsAt(t).Refused), OK: true, partial: now.coverage(t) < 1}
		})
	}
	return v
}

// refusalCounter counts the calls that a source has refused. It sums the increase of each series,
// because the sum over a group falls when the group evicts a key.
type refusalCounter struct {
	source stat.Source
	last   map[string]float64 // by series
	total  int64
}

// refusalInstruments count calls by their outcome, which is the second attribute.
var refusalInstruments = map[string]bool{
	instrument.BreakerCalls.Name: true, instrument.LimiterRequests.Name: true, instrument.WindowEvents.Name: true,
}

// maxRefused is the largest count that is used. Larger values are ignored, so that sums do not
// overflow.
const maxRefused = 1 << 53

// Totals returns the refused calls alone.
func (r *refusalCounter) Totals() window.Totals {
	now := make(map[string]float64, len(r.last))
	for s, value := range r.source.Observe {
		if !refusalInstruments[s.Instrument.Name] || len(s.Values) < 2 || s.Values[1] != "refused" {
			continue
		}
		id := s.ID()
		if !(value >= 0 && value <= maxRefused) { // also false for NaN
			value = r.last[id]
		}
		now[id] += value
	}
	for id, value := range now {
		old := r.last[id]
		if value < old { // the series was reset
			old = 0
		}
		r.total += int64(value - old)
	}
	r.last = now
	return window.Totals{Refused: r.total}
}
