package alert

import (
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Refusals is the number of calls in the last span that were refused: by a breaker, a limiter or a
// throttle, by a gate's breaker and its limiter together, or by all members of a group. It is read
// from the metrics that the source shows to exporters. Calls that wait and are then admitted are not
// refused. The gates of a weir.Group count the refusals of their limiters together, so give Refusals
// the group and not its gates.
//
// Until the monitor has run for a whole span the number is too low, so a Below condition has no data
// until then.
func Refusals(of stat.Source, span time.Duration) Value {
	v := Value{name: "number of refused calls over " + brief(span), high: math.Inf(1)}
	if of == nil {
		v.errs = append(v.errs, errors.New("its source is nil"))
	}
	v.errs = append(v.errs, spanFaults(span)...)
	v.start = func() probe {
		feed := newFeed(&refused{source: of}, viewShape(span))
		return single(v.name, func(t time.Time) measurement {
			feed.sample(t)
			view := feed.views[0]
			return measurement{Value: float64(view.CountsAt(t).Refused), OK: true, partial: view.CoverageAt(t) < 1}
		})
	}
	return v
}

// refused counts the calls that a source has refused. It adds up what each series has grown by, since
// series end: the sum over a group falls when the group forgets a key.
type refused struct {
	source stat.Source
	last   map[string]float64 // by series
	total  int64
}

// refusing are the instruments that count calls by their outcome, which is the second attribute.
var refusing = map[string]bool{
	instrument.BreakerCalls.Name: true, instrument.LimiterRequests.Name: true, instrument.WindowEvents.Name: true,
}

// mostRefused is the most that a figure is taken for. Sums of some do not overflow.
const mostRefused = 1 << 53

// Totals returns no counts but those of refused calls.
func (r *refused) Totals() window.Totals {
	now := make(map[string]float64, len(r.last))
	for s, value := range r.source.Observe {
		if !refusing[s.Instrument.Name] || len(s.Values) < 2 || s.Values[1] != "refused" {
			continue
		}
		id := s.ID()
		if !(value >= 0 && value <= mostRefused) { // no count
			value = r.last[id]
		}
		now[id] += value
	}
	for id, value := range now {
		old := r.last[id]
		if value < old { // it began anew
			old = 0
		}
		r.total += int64(value - old)
	}
	r.last = now
	return window.Totals{Refused: r.total}
}
