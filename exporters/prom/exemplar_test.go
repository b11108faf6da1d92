package prom_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

func TestExemplarsAreScraped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trace := ""
		b := breaker.New("payments", breaker.Config{Latency: true, Trace: func(context.Context) (traceID, spanID string) {
			return trace, "00f067aa0ba902b7"
		}})
		for i, took := range []time.Duration{20 * time.Millisecond, 3 * time.Minute} {
			trace = fmt.Sprintf("%032x", i+1)
			require.NoError(t, b.Run(t.Context(), func(context.Context) error {
				time.Sleep(took)
				return nil
			}))
		}
		_, registry := register(t, b)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		request.Header.Set("Accept", "application/openmetrics-text")
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(answer, request)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		const bucket = `weir_breaker_call_duration_seconds_bucket{weir_breaker_name="payments",weir_group_key="",le=`
		require.Contains(t, string(text), bucket+`"0.03125"} 1 # {trace_id="00000000000000000000000000000001",span_id="00f067aa0ba902b7"} 0.02 9.46684800`)
		require.Contains(t, string(text), bucket+`"+Inf"} 2 # {trace_id="00000000000000000000000000000002",span_id="00f067aa0ba902b7"} 180.0 9.46684980`)
		require.Equal(t, 1, strings.Count(string(text), "+Inf"))

		h := gatherHistogram(t, registry)
		require.Len(t, h.Exemplars, 2, "of the native histogram")
		require.Equal(t, 180.0, h.Exemplars[1].GetValue())
	})
}

func TestInvalidExemplarsAreLeftOut(t *testing.T) {
	valid := stat.Exemplar{Value: 1, TraceID: "1"}
	list := []stat.Exemplar{
		{Value: 1},
		{Value: math.NaN(), TraceID: "1"},
		{Value: 1, TraceID: "\xff"},
		{Value: 1, TraceID: strings.Repeat("1", 120)},
		valid,
	}
	series := instrumentNamed("weir.breaker.call.duration").Series("a", "")
	_, r := register(t, &fakeSource{spreads: []seriesHistogram{{series, stat.Histogram{Counts: []int64{1}, Sum: 1, Exemplars: list}}}})
	h := gatherHistogram(t, r)
	require.Len(t, h.Exemplars, 1)
	require.Len(t, h.Exemplars[0].Label, 1, "without a span")
}
