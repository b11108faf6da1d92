package producer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/stat"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

func exemplarsOf(t *testing.T, r sdk.Reader) (list []metricdata.Exemplar[float64]) {
	for _, m := range collect(t, r) {
		for _, p := range m.Data.(metricdata.ExponentialHistogram[float64]).DataPoints {
			list = append(list, p.Exemplars...)
		}
	}
	return list
}

func TestExemplarsAreExported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("payments", breaker.Config{Latency: true, Trace: func(context.Context) (trace, span string) { return traceID, spanID }})
		require.NoError(t, b.Run(t.Context(), func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}))
		want := metricdata.Exemplar[float64]{
			Time: time.Now(), Value: 1,
			TraceID: []byte{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36},
			SpanID:  []byte{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7},
		}
		require.Equal(t, []metricdata.Exemplar[float64]{want}, exemplarsOf(t, newReader(t, b)))
	})
}

// In deltas an exemplar is exported once.
func TestDeltasHaveNewExemplarsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := stat.Histogram{Counts: []int64{1}, Sum: 1, Exemplars: []stat.Exemplar{{Value: 1, Time: time.Now(), TraceID: traceID}, {Value: 2, Time: time.Now(), TraceID: "no hex"}}}
		source := &histogramSource{durationsOf("a", h)}
		p, err := producer.New(producer.Config{Delta: true}, source)
		require.NoError(t, err)
		r := sdk.NewManualReader(sdk.WithProducer(p))
		sdk.NewMeterProvider(sdk.WithReader(r))
		require.Len(t, exemplarsOf(t, r), 2)
		time.Sleep(time.Second)
		require.Empty(t, exemplarsOf(t, r))
		time.Sleep(time.Second)
		h.Exemplars[0].Time, h.Counts = time.Now(), []int64{2}
		(*source)[0].histogram = h
		time.Sleep(time.Second)
		list := exemplarsOf(t, r)
		require.Len(t, list, 1)
		require.Equal(t, 1.0, list[0].Value)
		require.Nil(t, list[0].SpanID)
	})
}
