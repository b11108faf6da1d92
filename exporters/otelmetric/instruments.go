package otelmetric

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/exporters/otelmetric/internal/scope"
	"github.com/weir-go/weir/stat"
)

// newInstruments creates the instruments with the meter, except for distributions. All of them have
// float64 values, as sources yield; integers are exact up to 2⁵³.
func newInstruments(meter metric.Meter, list []*stat.Instrument) (map[*stat.Instrument]metric.Float64Observable, []metric.Observable, error) {
	byOrigin := make(map[*stat.Instrument]metric.Float64Observable, len(list))
	all := make([]metric.Observable, 0, len(list))
	var errs []error
	for _, i := range list {
		if i.Kind == stat.Distribution {
			continue // the API cannot observe distributions
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

// series is a series in the form of OpenTelemetry: an observation without its value.
type series struct {
	instrument metric.Float64Observable
	options    []metric.ObserveOption
}

func newSeries(i metric.Float64Observable, s *stat.Series) series {
	return series{instrument: i, options: []metric.ObserveOption{metric.WithAttributeSet(scope.Attributes(s))}}
}
