package alert

import (
	"errors"
	"math"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// counted returns a value for the counters of a source that isCounted selects: the increase of
// these counters in the last span. The value is too low until a whole span has passed, so a Below
// condition has no data until then.
func counted(name string, of stat.Source, span time.Duration, isCounted func(*stat.Series) bool) Value {
	v := Value{name: name, high: math.Inf(1)}
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	v.errs = append(v.errs, spanErrors(span)...)
	v.id = newValueID(v.name, of, 0)
	v.start = func() sampler {
		views := newViews(&seriesCounter{source: of, isCounted: isCounted}, span)
		return sampleOne(v.name, func(t time.Time) measurement {
			now := views.sample(t)[0]
			return measurement{Value: float64(now.CountsAt(t).Refused), OK: true, partial: now.coverage(t) < 1}
		})
	}
	return v
}

// seriesCounter adds up counters of a source. It sums the increase of each series, because the sum
// over a group falls when the group evicts a key.
type seriesCounter struct {
	source    stat.Source
	isCounted func(*stat.Series) bool
	last      map[string]float64 // by series
	total     int64
}

// maxCounter is the largest count that is used. Larger values are ignored, so that sums do not
// overflow.
const maxCounter = 1 << 53

// Totals returns the sum in the field Refused. The other fields are 0.
func (c *seriesCounter) Totals() window.Totals {
	now := make(map[string]float64, len(c.last))
	for s, value := range c.source.Observe {
		if !c.isCounted(s) {
			continue
		}
		id := s.ID()
		if !(value >= 0 && value <= maxCounter) { // also false for NaN
			value = c.last[id]
		}
		now[id] += value
	}
	for id, value := range now {
		old := c.last[id]
		if value < old { // the series was reset
			old = 0
		}
		c.total += int64(value - old)
	}
	c.last = now
	return window.Totals{Refused: c.total}
}
