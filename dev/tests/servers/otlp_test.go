package servers_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/window"
)

// receiver receives metrics by OTLP over HTTP, like a collector, and keeps the latest of each.
type receiver struct {
	t *testing.T

	mu      sync.Mutex
	service string
	metrics map[string]*metrics.Metric
	scopes  map[string]string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var body io.Reader = request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			r.t.Errorf("gzip: %v", err)
			return
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return // the program was closed during an export, and sends the latest counts again
	}
	var export collector.ExportMetricsServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &export)
	}
	if err != nil || request.URL.Path != "/v1/metrics" || request.Header.Get("Content-Type") != "application/x-protobuf" {
		r.t.Errorf("%s %s: %v", request.Method, request.URL, err)
		return
	}
	r.add(&export)
	answer, _ := proto.Marshal(&collector.ExportMetricsServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func (r *receiver) add(export *collector.ExportMetricsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range export.ResourceMetrics {
		r.service = text(resource.Resource.Attributes, "service.name")
		for _, scope := range resource.ScopeMetrics {
			for _, m := range scope.Metrics {
				r.metrics[m.Name], r.scopes[m.Name] = m, scope.Scope.Name
			}
		}
	}
}

// text returns the value of an attribute.
func text(attributes []*common.KeyValue, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// sum returns the values of a sum, each under its value of the attribute.
func (r *receiver) sum(name, attribute string) map[string]float64 {
	r.t.Helper()
	require.Contains(r.t, r.metrics, name)
	values := map[string]float64{}
	for _, p := range r.metrics[name].GetSum().DataPoints {
		values[text(p.Attributes, attribute)] = p.GetAsDouble()
	}
	return values
}

// TestOTLPReceiverGetsTheCountsOfTheProgram compares the last export of a program with its counts.
func TestOTLPReceiverGetsTheCountsOfTheProgram(t *testing.T) {
	r := &receiver{t: t, metrics: map[string]*metrics.Metric{}, scopes: map[string]string{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_SERVICE_NAME", "shop")
	exporter, err := otlpmetrichttp.New(t.Context())
	require.NoError(t, err)
	s := newProgram()
	histograms, err := producer.New(producer.Config{}, s.payments)
	require.NoError(t, err)
	provider := sdk.NewMeterProvider(sdk.WithReader(
		sdk.NewPeriodicReader(exporter, sdk.WithInterval(200*time.Millisecond), sdk.WithProducer(histograms))))
	_, err = otelmetric.Register(provider, s.payments, s.monitor)
	require.NoError(t, err)
	s.run(t)
	require.NoError(t, provider.Shutdown(context.WithoutCancel(t.Context()))) // exports once more

	require.Equal(t, "shop", r.service)
	n, a := s.payments.Totals(), s.payments.Stats()
	require.Equal(t, map[string]float64{
		"success": float64(n.Successes), "failure": float64(n.Failures), "ignored": float64(n.Ignored), "refused": float64(n.Refused),
	}, r.sum("weir.breaker.calls", "weir.breaker.outcome"))
	require.Equal(t, map[string]float64{
		"allowed": float64(a.Allowed), "waited": float64(a.Waited), "refused": float64(a.Refused), "cancelled": float64(a.Cancelled),
	}, r.sum("weir.limiter.requests", "weir.limiter.outcome"))
	require.EqualValues(t, s.opened.Load(), r.sum("weir.breaker.transitions", "weir.breaker.state")["open"])
	require.Equal(t, 1.0, r.sum("weir.breaker.state", "weir.breaker.state")[string(s.payments.Breaker().State())])
	require.True(t, r.metrics["weir.breaker.calls"].GetSum().IsMonotonic)
	require.False(t, r.metrics["weir.breaker.state"].GetSum().IsMonotonic)
	require.Equal(t, "github.com/weir-go/weir/exporters/otelmetric", r.scopes["weir.breaker.calls"])

	l := s.payments.Breaker().LifetimeLatency()
	compareBuckets(t, &l, r)
}

// compareBuckets compares each bucket of the program's histogram with the received one.
func compareBuckets(t *testing.T, l *window.Latency, r *receiver) {
	t.Helper()
	const name = "weir.breaker.call.duration"
	require.Equal(t, "github.com/weir-go/weir/exporters/otelmetric/producer", r.scopes[name])
	histogram := r.metrics[name].GetExponentialHistogram()
	require.Equal(t, metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, histogram.AggregationTemporality)
	require.Len(t, histogram.DataPoints, 1)
	p := histogram.DataPoints[0]
	want := l.Histogram()
	require.EqualValues(t, want.Schema, p.Scale)
	require.EqualValues(t, l.Count(), p.Count)
	require.Equal(t, l.Sum, p.GetSum())
	require.Equal(t, l.Max.Seconds(), p.GetMax())
	require.EqualValues(t, want.Zero, p.ZeroCount)
	for i, n := range want.Counts {
		at := want.Offset + i - 1 - int(p.Positive.Offset)
		require.EqualValues(t, n, p.Positive.BucketCounts[at], "bucket %d", i)
	}
}
