package producer

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/exporters/otelmetric/internal/scope"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// Producer shows the distributions of sources to readers of the SDK. It is made with
// [New], safe for concurrent use, and may be given to several readers. It takes no
// lock.
type Producer struct {
	set   *read.Set[line]
	scope instrumentation.Scope
}

var _ sdk.Producer = (*Producer)(nil)

// New returns a producer of the sources, which it reads once to learn their
// instruments. It fails if [read.New] fails with the sources. A source that is
// given twice, or is part of another, is fine and exported once; one that has no
// distributions may be given too.
func New(sources ...stat.Source) (*Producer, error) {
	set, err := read.New(newLine, sources...)
	if err != nil {
		return nil, err
	}
	return &Producer{set: set, scope: instrumentation.Scope{Name: scope.Name + "/producer", Version: scope.Version()}}, nil
}

// Add adds sources, which the next reading shows. It adds none of them and returns an
// error where [New] would have failed, or where one shows an instrument that is neither
// the library's nor known from New. Sources that are there already change nothing.
func (p *Producer) Add(sources ...stat.Source) error { return p.set.Add(sources...) }

// Remove removes the sources: their series are gone from the next reading, save those
// that another source shows too. Sources are found by ==.
func (p *Producer) Remove(sources ...stat.Source) { p.set.Remove(sources...) }

// Produce implements the SDK's Producer. It never returns an error.
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	points, now := map[*stat.Instrument][]point{}, time.Now()
	for l, h := range p.set.Histograms {
		points[l.instrument] = append(points[l.instrument], l.point(h, now))
	}
	if len(points) == 0 {
		return nil, nil
	}
	metrics := make([]metricdata.Metrics, 0, len(points))
	for _, i := range p.set.Instruments() {
		if list := points[i]; list != nil {
			metrics = append(metrics, metricdata.Metrics{
				Name: i.Name, Description: i.Help, Unit: i.Unit,
				Data: metricdata.ExponentialHistogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: list},
			})
		}
	}
	return []metricdata.ScopeMetrics{{Scope: p.scope, Metrics: metrics}}, nil
}

type point = metricdata.ExponentialHistogramDataPoint[float64]

// line is a series in OpenTelemetry's form.
type line struct {
	instrument *stat.Instrument
	attributes attribute.Set
	created    time.Time
}

func newLine(s *stat.Series) line {
	return line{instrument: s.Instrument, attributes: scope.Attributes(s), created: s.Created}
}

func (l *line) point(h stat.Histogram, now time.Time) point {
	counts := make([]uint64, len(h.Counts))
	for i, n := range h.Counts {
		counts[i] = uint64(n)
	}
	p := point{
		Attributes: l.attributes, StartTime: l.created, Time: now,
		Count: uint64(h.Count()), Sum: h.Sum,
		Scale: int32(h.Schema), ZeroCount: uint64(h.Zero), ZeroThreshold: h.ZeroThreshold,
		// A bucket is named by its upper bound in Prometheus, and by its lower one here.
		PositiveBucket: metricdata.ExponentialBucket{Offset: int32(h.Offset - 1), Counts: counts},
	}
	if h.Max > 0 {
		p.Max = metricdata.NewExtrema(h.Max)
	}
	return p
}
