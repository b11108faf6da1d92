package otelmetric

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/exporters/otelmetric/internal/scope"
	"github.com/weir-go/weir/stat"
)

// newInstruments makes the instruments with the meter, but for distributions. All are
// of floats, since that is what sources yield; whole numbers stay whole up to 2⁵³.
func newInstruments(meter metric.Meter, list []*stat.Instrument) (map[*stat.Instrument]metric.Float64Observable, []metric.Observable, error) {
	byOrigin := make(map[*stat.Instrument]metric.Float64Observable, len(list))
	all := make([]metric.Observable, 0, len(list))
	var errs []error
	for _, i := range list {
		if i.Kind == stat.Distribution {
			continue // of which the API has no observable form
		}
		made, err := newInstrument(meter, i)
		errs = append(errs, err)
		byOrigin[i] = made
		all = append(all, made)
	}
	return byOrigin, all, errors.Join(errs...)
}

func newInstrument(meter metric.Meter, i *stat.Instrument) (metric.Float64Observable, error) {
	help, unit := metric.WithDescription(i.Help), metric.WithUnit(i.Unit)
	switch i.Kind {
	case stat.Counter:
		return meter.Float64ObservableCounter(i.Name, help, unit)
	case stat.UpDown:
		return meter.Float64ObservableUpDownCounter(i.Name, help, unit)
	default:
		return meter.Float64ObservableGauge(i.Name, help, unit)
	}
}

// line is a series in OpenTelemetry's form: all of an observation but its value.
type line struct {
	instrument metric.Float64Observable
	options    []metric.ObserveOption
}

func newLine(i metric.Float64Observable, s *stat.Series) line {
	return line{instrument: i, options: []metric.ObserveOption{metric.WithAttributeSet(scope.Attributes(s))}}
}
