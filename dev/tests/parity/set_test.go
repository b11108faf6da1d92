package parity_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/weirconfig"
)

// Every exporter exports the gates of a weirconfig.Set, and those that an update adds.
func TestEveryExporterFollowsASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parse := func(text string) *weirconfig.File {
			file, err := weirconfig.Parse("weir.yaml", []byte(text))
			require.NoError(t, err)
			return file
		}
		set, err := weirconfig.New(parse(`gates: {payments: {breaker: {latency: true}}}`), weirconfig.Config{})
		require.NoError(t, err)

		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(prom.NewCollector(set)))
		histograms, err := producer.New(producer.Config{}, set)
		require.NoError(t, err)
		reader := sdk.NewManualReader(sdk.WithProducer(histograms))
		_, err = otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(reader)), set)
		require.NoError(t, err)
		page, err := dashboard.New(dashboard.Config{}, set)
		require.NoError(t, err)

		requireShown := func(want ...string) {
			t.Helper()
			for _, name := range []string{"weir_breaker_state", "weir_breaker_call_duration_seconds"} {
				var got []string
				for _, f := range gather(t, registry) {
					if f.GetName() == name {
						for _, m := range f.Metric {
							got = append(got, m.Label[0].GetValue())
						}
					}
				}
				require.Equal(t, want, slices.Compact(got), name)
			}
			var collected metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &collected))
			for _, name := range []string{"weir.breaker.state", "weir.breaker.call.duration"} {
				require.Equal(t, want, breakersOf(collected, name), name)
			}
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/snapshot.json", http.NoBody))
			for _, name := range want {
				require.Contains(t, w.Body.String(), fmt.Sprintf(`"name":%q`, name))
			}
		}
		requireShown("payments")
		require.NoError(t, set.Update(parse(`gates: {payments: {breaker: {latency: true}}, search: {breaker: {latency: true}}}`)))
		time.Sleep(time.Second) // until the next sample of the page
		requireShown("payments", "search")
	})
}

// breakersOf returns the names of the breakers in a metric.
func breakersOf(collected metricdata.ResourceMetrics, metric string) (names []string) {
	for _, s := range collected.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name != metric {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					name, _ := p.Attributes.Value("weir.breaker.name")
					names = append(names, name.AsString())
				}
			case metricdata.ExponentialHistogram[float64]:
				for _, p := range data.DataPoints {
					name, _ := p.Attributes.Value("weir.breaker.name")
					names = append(names, name.AsString())
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
