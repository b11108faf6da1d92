package read

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// health is what a set has to say of itself. It is a [stat.Source].
type health struct {
	panics  tally
	skipped [faults]tally // those of duplicate and beyond are in use
}

// tally is a counter and the series that shows it.
type tally struct {
	atomic.Int64
	series *stat.Series
}

func newHealth() *health {
	h := &health{}
	h.panics.series = instrument.ExporterSourcePanics.Series()
	for f := duplicate; f < faults; f++ {
		h.skipped[f].series = instrument.ExporterSkippedSamples.Series(reasons[f])
	}
	return h
}

func (h *health) Observe(yield func(*stat.Series, float64) bool) {
	if !yield(h.panics.series, float64(h.panics.Load())) {
		return
	}
	for f := duplicate; f < faults; f++ {
		if !yield(h.skipped[f].series, float64(h.skipped[f].Load())) {
			return
		}
	}
}

// has says whether the instrument is one that health alone may show.
func (h *health) has(i *stat.Instrument) bool {
	return i == instrument.ExporterSourcePanics || i == instrument.ExporterSkippedSamples
}

func (h *health) shows(s *stat.Series) (found bool) {
	for own := range h.Observe {
		found = found || own == s
	}
	return found
}

// count books what was left out.
func (h *health) count(list []fresh) {
	for _, f := range list {
		if f.fault >= duplicate {
			h.skipped[f.fault].Add(1)
		}
	}
}

// readSource reads the source by look. One faulty source must not hide the others, least
// of all when something goes wrong, so a panic ends here. The first is logged: a
// source that panics does so in every reading.
func readSource[V any](h *health, s stat.Source, look look[V], note func(*stat.Series, V) bool) {
	defer func() {
		if value := recover(); value != nil && h.panics.Add(1) == 1 {
			slog.Error("weir: a source panicked while being read", "source", fmt.Sprintf("%T", s),
				"panic", value, "stack", string(debug.Stack()))
		}
	}()
	look(s, note)
}
