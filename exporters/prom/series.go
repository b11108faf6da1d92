package prom

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weir-go/weir/stat"
)

// family is an instrument in the form of Prometheus.
type family struct {
	desc   *prometheus.Desc
	kind   stat.Kind
	bounds []float64 // of a distribution
}

// newFamilies returns a family per instrument.
func newFamilies(instruments []*stat.Instrument) (map[*stat.Instrument]*family, error) {
	families := make(map[*stat.Instrument]*family, len(instruments))
	owners := make(map[string]*stat.Instrument, len(instruments))
	var errs []error
	for _, i := range instruments {
		for _, name := range metricNames(i) {
			if owner, ok := owners[name]; ok {
				errs = append(errs, fmt.Errorf("the instruments %s and %s have the same Prometheus name %s", owner.Name, i.Name, name))
			}
			owners[name] = i
		}
		f := &family{desc: prometheus.NewDesc(metricName(i), i.Help, labelNames(i), nil), kind: i.Kind, bounds: i.Bounds}
		// client_golang v1.15.0 shows the error of a Desc only in its metrics.
		_, invalid := prometheus.NewConstMetric(f.desc, prometheus.UntypedValue, 0, make([]string, len(labelNames(i)))...)
		errs = append(errs, invalid)
		families[i] = f
	}
	return families, errors.Join(errs...)
}

// series is a series in the form of Prometheus: a metric without its value.
type series struct {
	*family
	labels  []*dto.LabelPair
	created *timestamppb.Timestamp // of counters and distributions, if it is known
}

func (f *family) newSeries(s *stat.Series) *series {
	l := &series{family: f, labels: prometheus.MakeLabelPairs(f.desc, s.Values)}
	if (f.kind == stat.Counter || f.kind == stat.Distribution) && !s.Created.IsZero() {
		l.created = timestamppb.New(s.Created)
	}
	return l
}

// sample is the value of a series in one scrape. Unlike [prometheus.NewConstMetric] it does not
// build the labels again.
type sample struct {
	*series
	value float64
}

func (s *sample) Desc() *prometheus.Desc { return s.desc }

func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.labels
	if s.kind == stat.Counter {
		out.Counter = &dto.Counter{Value: &s.value, CreatedTimestamp: s.created}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}
