package otelmetric

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/weir-go/weir/exporters/otelmetric/internal/scope"
	"github.com/weir-go/weir/stat"
)

// Register has the sources observed in every collection of the provider, until
// Unregister is called on what it returns. It reads them once to learn their
// instruments, and takes note of nothing if it fails.
//
// It fails if [stat.NewSet] fails with the sources or if the provider refuses an
// instrument. A source that is given twice, or is part of another as a breaker is
// of its gate, is fine and exported once. That holds within one call: a source
// registered with one provider by two calls is added up by it and shows the double.
//
// Register may be called at any time and from several goroutines, with a provider
// that is to be set up later too.
func Register(provider metric.MeterProvider, sources ...stat.Source) (metric.Registration, error) {
	var instruments map[*stat.Instrument]metric.Float64Observable
	set, err := stat.NewSet(func(s *stat.Series) line { return newLine(instruments[s.Instrument], s) }, sources...)
	if err != nil {
		return nil, err
	}
	meter := provider.Meter(scope.Name, metric.WithInstrumentationVersion(scope.Version()))
	instruments, all, err := newInstruments(meter, set.Instruments())
	if err != nil {
		return nil, fmt.Errorf("otelmetric: %w", err)
	}
	r, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		set.Observe(func(l line, value float64) { o.ObserveFloat64(l.instrument, value, l.options...) })
		// Never an error: a periodic reader would throw away all that was collected, from anybody.
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("otelmetric: %w", err)
	}
	return r, nil
}

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
