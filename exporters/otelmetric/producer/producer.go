package producer

import (
	"context"
	"encoding/hex"
	"iter"
	"time"
	"weak"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/exporters/otelmetric/internal/scope"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// Producer exports the distributions of sources to readers of the SDK. It is safe for concurrent
// use and may be given to several readers. The zero value does not work: use New.
type Producer struct {
	set    *read.Set[series]
	scope  instrumentation.Scope
	summed bool // points are summed, because attributes are left out
	deltas *deltas
}

// Config configures a producer. The zero value exports all attributes and cumulative values.
type Config struct {
	// Delta exports what came since the last collection, not since a source was created. The
	// maximum is then not known. A source that is removed and added again goes on where it was last
	// exported. Each collection starts a new interval, so give the producer to one reader.
	// Concurrent collections wait for each other, and so for a slow source. Add and Remove do not
	// wait. Default false.
	Delta bool
	// Attributes reports which attributes are exported, such as attribute.NewDenyKeysFilter of
	// weir.group.key. Points whose other attributes are the same are summed. Default all.
	Attributes attribute.Filter
}

var _ sdk.Producer = (*Producer)(nil)

// New returns a producer of the sources. It reads each source once to learn its instruments. It
// fails if [read.New] fails with the sources. A source that is given twice, or is part of another
// source, is exported once. Of a source with a method Sources, such as a weirconfig.Set, each
// collection exports the sources that the method returns then: see [read.Set]. Sources without
// distributions may be given too.
func New(c Config, sources ...stat.Source) (*Producer, error) {
	set, err := read.New(func(s *stat.Series) series { return newSeries(s, c.Attributes) }, sources...)
	if err != nil {
		return nil, err
	}
	p := &Producer{set: set, scope: instrumentation.Scope{Name: scope.Name + "/producer", Version: scope.Version()}, summed: c.Attributes != nil}
	if c.Delta {
		p.deltas = &deltas{}
	}
	return p, nil
}

// Add adds sources, which are exported from the next collection. It returns an error and adds none
// of them if [New] would have failed, or if a source has an instrument that is neither weir's nor
// that of a source given to New. Sources that were added before are ignored.
func (p *Producer) Add(sources ...stat.Source) error { return p.set.Add(sources...) }

// Remove removes the sources that are == to those given. The next collection lacks their series,
// except for those that another source yields too.
func (p *Producer) Remove(sources ...stat.Source) { p.set.Remove(sources...) }

// Produce implements the SDK's Producer. It never returns an error.
func (p *Producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	temporality, now := metricdata.CumulativeTemporality, time.Now()
	points := map[*stat.Instrument][]point{}
	totals := iter.Seq2[series, stat.Histogram](p.set.Histograms)
	if p.summed {
		totals = sumByIdentity(totals)
	}
	if p.deltas != nil {
		temporality, totals = metricdata.DeltaTemporality, p.deltas.since(totals, now)
	}
	for l, h := range totals {
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
				Data: metricdata.ExponentialHistogram[float64]{Temporality: temporality, DataPoints: list},
			})
		}
	}
	return []metricdata.ScopeMetrics{{Scope: p.scope, Metrics: metrics}}, nil
}

type point = metricdata.ExponentialHistogramDataPoint[float64]

// series is a series in the form of OpenTelemetry.
type series struct {
	source     weak.Pointer[stat.Series] // does not keep the source alive
	instrument *stat.Instrument
	attributes attribute.Set
	created    time.Time
}

func newSeries(s *stat.Series, filter attribute.Filter) series {
	attributes := scope.Attributes(s)
	if filter != nil {
		attributes, _ = attributes.Filter(filter)
	}
	return series{source: weak.Make(s), instrument: s.Instrument, attributes: attributes, created: s.Created}
}

func (l *series) point(h stat.Histogram, now time.Time) point {
	counts := make([]uint64, len(h.Counts))
	for i, n := range h.Counts {
		counts[i] = uint64(n)
	}
	p := point{
		Attributes: l.attributes, StartTime: l.created, Time: now,
		Count: uint64(h.Count()), Sum: h.Sum,
		Scale: int32(h.Schema), ZeroCount: uint64(h.Zero), ZeroThreshold: h.ZeroThreshold,
		// A bucket is numbered by its upper bound in Prometheus, and by its lower bound here.
		PositiveBucket: metricdata.ExponentialBucket{Offset: int32(h.Offset - 1), Counts: counts},
	}
	if p.StartTime.After(now) { // of another clock, such as that of a testing/synctest bubble
		p.StartTime = time.Time{} // not known
	}
	if h.Max > 0 {
		p.Max = metricdata.NewExtrema(h.Max)
	}
	for _, e := range h.Exemplars {
		p.Exemplars = append(p.Exemplars, exemplar(e))
	}
	return p
}

// exemplar converts an exemplar. An ID that is not hexadecimal is left out.
func exemplar(e stat.Exemplar) metricdata.Exemplar[float64] {
	out := metricdata.Exemplar[float64]{Time: e.Time, Value: e.Value}
	if id, err := hex.DecodeString(e.TraceID); err == nil {
		out.TraceID = id
	}
	if id, err := hex.DecodeString(e.SpanID); err == nil && len(id) > 0 {
		out.SpanID = id
	}
	return out
}
