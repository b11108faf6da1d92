package prom

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weir-go/weir/stat"
)

// family is an instrument in Prometheus's form.
type family struct {
	desc   *prometheus.Desc
	kind   stat.Kind
	bounds []float64 // of a distribution
}

// newFamilies makes a family of each instrument.
func newFamilies(instruments []*stat.Instrument) (map[*stat.Instrument]*family, error) {
	families := make(map[*stat.Instrument]*family, len(instruments))
	owners := make(map[string]*stat.Instrument, len(instruments))
	var errs []error
	for _, i := range instruments {
		for _, name := range metricNames(i) {
			if owner, ok := owners[name]; ok {
				errs = append(errs, fmt.Errorf("the instruments %s and %s are both %s to Prometheus", owner.Name, i.Name, name))
			}
			owners[name] = i
		}
		f := &family{desc: prometheus.NewDesc(metricName(i), i.Help, labelNames(i), nil), kind: i.Kind, bounds: i.Bounds}
		errs = append(errs, f.desc.Err())
		families[i] = f
	}
	return families, errors.Join(errs...)
}

// line is a series in Prometheus's form: all of a metric but its value.
type line struct {
	*family
	labels  []*dto.LabelPair
	created *timestamppb.Timestamp // of what only grows, where it is known
}

func (f *family) line(s *stat.Series) *line {
	l := &line{family: f, labels: prometheus.MakeLabelPairs(f.desc, s.Values)}
	if (f.kind == stat.Counter || f.kind == stat.Distribution) && !s.Created.IsZero() {
		l.created = timestamppb.New(s.Created)
	}
	return l
}

// sample is the value of a line in one scrape. It is a constant metric as those
// of [prometheus.NewConstMetric] are, without their price: it costs a few words
// where they build every label anew.
type sample struct {
	*line
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
