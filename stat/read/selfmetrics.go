package read

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// selfMetrics are the metrics of a set about itself. It is a [stat.Source].
type selfMetrics struct {
	panics  counter
	skipped [faults]counter // from duplicate on
}

type counter struct {
	atomic.Int64
	series *stat.Series
}

func newSelfMetrics() *selfMetrics {
	m := &selfMetrics{}
	m.panics.series = instrument.ExporterSourcePanics.Series()
	for f := duplicate; f < faults; f++ {
		m.skipped[f].series = instrument.ExporterSkippedSamples.Series(faultNames[f])
	}
	return m
}

func (m *selfMetrics) Observe(yield func(*stat.Series, float64) bool) {
	if !yield(m.panics.series, float64(m.panics.Load())) {
		return
	}
	for f := duplicate; f < faults; f++ {
		if !yield(m.skipped[f].series, float64(m.skipped[f].Load())) {
			return
		}
	}
}

// owns reports whether only selfMetrics may show the instrument.
func (m *selfMetrics) owns(i *stat.Instrument) bool {
	return i == instrument.ExporterSourcePanics || i == instrument.ExporterSkippedSamples
}

func (m *selfMetrics) shows(s *stat.Series) (found bool) {
	for own := range m.Observe {
		found = found || own == s
	}
	return found
}

// count counts the series that are left out.
func (m *selfMetrics) count(list []newSeries) {
	for _, f := range list {
		if f.fault >= duplicate {
			m.skipped[f.fault].Add(1)
		}
	}
}

// partsOf returns the sources that a source consists of now, without itself, or nil if it is not
// made of others.
func (m *selfMetrics) partsOf(s stat.Source) (parts []stat.Source) {
	whole, ok := s.(interface{ Sources() []stat.Source })
	if !ok {
		return nil
	}
	defer m.recoverPanic(s)
	for _, part := range whole.Sources() {
		if part != nil && !(canBeFound(part) && part == s) {
			parts = append(parts, part)
		}
	}
	return parts
}

// observeSafely reads a source and recovers its panic, since a faulty source must not hide the
// others.
func observeSafely[V any](m *selfMetrics, s stat.Source, observe func(stat.Source, func(*stat.Series, V) bool), yield func(*stat.Series, V) bool) {
	defer m.recoverPanic(s)
	observe(s, yield)
}

// recoverPanic recovers and counts a panic of a source. It logs the first one only: a source that
// panics does so at every reading.
func (m *selfMetrics) recoverPanic(s stat.Source) {
	if value := recover(); value != nil && m.panics.Add(1) == 1 {
		slog.Error("weir: a source panicked while it was read", "source", fmt.Sprintf("%T", s),
			"panic", value, "stack", string(debug.Stack()))
	}
}
