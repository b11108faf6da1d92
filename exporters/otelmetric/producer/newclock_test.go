package producer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
)

// A producer and its breaker are package variables that are used with the real clock, and then in
// one bubble after the other. Each call is exported once as a delta, and no total falls. No
// interval begins after its end.
func TestAProducerStartsAgainWithEachClock(t *testing.T) {
	b := breaker.New("payments", breaker.Config{Latency: true, Trace: func(context.Context) (trace, span string) { return traceID, spanID }})
	totals, err := producer.New(producer.Config{}, b)
	require.NoError(t, err)
	deltas, err := producer.New(producer.Config{Delta: true}, b)
	require.NoError(t, err)
	read := func(p *producer.Producer) point {
		scopes, err := p.Produce(t.Context())
		require.NoError(t, err)
		points := scopes[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64]).DataPoints
		require.Len(t, points, 1)
		require.LessOrEqual(t, points[0].StartTime, points[0].Time)
		return points[0]
	}
	calls := uint64(0)
	collect := func(t *testing.T, took time.Duration) (delta point) {
		require.NoError(t, b.Run(t.Context(), func(context.Context) error { time.Sleep(took); return nil }))
		calls++
		require.Equal(t, calls, read(totals).Count)
		delta = read(deltas)
		require.Equal(t, uint64(1), delta.Count)
		return delta
	}
	collect(t, 0)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			delta := collect(t, time.Second)
			require.Zero(t, delta.StartTime, "it is in another clock")
			for range 3 {
				require.Len(t, delta.Exemplars, 1)
				require.True(t, delta.Time.Equal(delta.Exemplars[0].Time))
				time.Sleep(59 * time.Second)
				delta = collect(t, time.Second)
				require.Equal(t, time.Minute, delta.Time.Sub(delta.StartTime))
			}
		})
	}
	collect(t, 0)
}
