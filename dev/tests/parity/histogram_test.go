package parity_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric/producer"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// Package producer exports the histograms to OpenTelemetry. The test runs in a bubble, so that the
// number of recorded values is known.
func TestHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users, idle := breaker.New("users", breaker.Config{Latency: true}), breaker.New("idle", breaker.Config{Latency: true})
		for n := range 60 {
			took := time.Duration(n*n*n) * 100 * time.Nanosecond
			_ = users.Run(t.Context(), func(context.Context) error { time.Sleep(took); return nil })
		}
		sources := append(slices.Concat(gatesThatWaited(t), limitersThatWaited(t)), users, idle, monitorThatTook(t))
		require.Equal(t, map[string]uint64{
			"weir_breaker_call_duration_seconds users":        60,
			"weir_breaker_call_duration_seconds idle":         0,
			"weir_breaker_call_duration_seconds payments":     5,
			"weir_breaker_call_duration_seconds hosts a":      3,
			"weir_breaker_call_duration_seconds hosts b":      1,
			"weir_breaker_call_duration_seconds hosts _other": 0, // exists from the start
			"weir_limiter_wait_duration_seconds payments":     4, // all except the first
			"weir_limiter_wait_duration_seconds hosts":        2, // of all keys
			"weir_limiter_wait_duration_seconds logins":       3, // of all keys
			"weir_limiter_wait_duration_seconds uploads":      5,
			"weir_limiter_wait_duration_seconds jobs":         1,
			"weir_alert_evaluation_duration_seconds quick":    2,
			"weir_alert_evaluation_duration_seconds on page":  2,
			"weir_notifier_delivery_duration_seconds pager":   1,
			"weir_notifier_delivery_duration_seconds chat":    2, // attempts
		}, requireSameHistograms(t, sources...))
	})
}

// gatesThatWaited returns a gate and a group after calls that waited for a token.
func gatesThatWaited(t *testing.T) []stat.Source {
	c := weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: time.Minute, Breaker: breaker.Config{Latency: true}}
	payments, hosts := weir.New("payments", c), weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: c})
	run := func(g *weir.Gate, calls int) {
		for n := range calls {
			took := time.Duration(n) * time.Millisecond
			require.NoError(t, g.Run(t.Context(), func(context.Context) error { time.Sleep(took); return nil }))
		}
	}
	run(payments, 5)
	run(hosts.Get("a"), 3)
	run(hosts.Get("b"), 1)
	return []stat.Source{payments, hosts}
}

// limitersThatWaited returns limiters with names after calls that waited.
func limitersThatWaited(t *testing.T) []stat.Source {
	logins := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(1), Burst: 1, Name: "logins"})
	for _, key := range []string{"ann", "ann", "ann", "bob", "bob"} {
		require.NoError(t, logins.Get(key).Wait(t.Context(), 1))
	}
	uploads := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000), Burst: 50, Name: "uploads"})
	uploads.Take(50)
	for n := range 5 {
		require.NoError(t, uploads.Wait(t.Context(), 10*(n+1)))
	}
	jobs := inflight.New(inflight.Config{Limit: 1, Name: "jobs"})
	slot, err := jobs.Acquire(t.Context())
	require.NoError(t, err)
	time.AfterFunc(100*time.Second, func() { slot.Done(t.Context(), nil) }) // above the last bound
	_, err = jobs.Acquire(t.Context())
	require.NoError(t, err)
	return []stat.Source{logins, uploads, jobs}
}

// monitorThatTook returns a monitor whose rules and notifiers took some time.
func monitorThatTook(t *testing.T) stat.Source {
	tries := 0
	m := alert.NewMonitor(alert.Config{Logger: slog.New(slog.DiscardHandler), Notify: []alert.Notifier{
		alert.Func("pager", func(context.Context, alert.Alert) error { time.Sleep(3 * time.Second); return nil }),
		alert.Func("chat", func(context.Context, alert.Alert) error {
			time.Sleep(20 * time.Millisecond)
			if tries++; tries == 1 {
				return errors.New("not now")
			}
			return nil
		}),
	}},
		// takes no time
		alert.Rule{Name: "quick", Value: alert.Bool(func() bool { return false }), When: alert.Above(0)},
		alert.Rule{Name: "on", Severity: "page", When: alert.Above(0), Value: alert.Bool(func() bool { time.Sleep(200 * time.Millisecond); return true })})
	m.Evaluate(time.Now())
	m.Evaluate(time.Now())
	require.NoError(t, m.Flush(t.Context()))
	return m
}

// requireSameHistograms fails the test unless both exporters make the same histograms of every
// distribution of the library. It returns the number of values in each. OpenTelemetry's exporter
// makes native histograms only.
func requireSameHistograms(t *testing.T, sources ...stat.Source) map[string]uint64 {
	t.Helper()
	direct := prometheus.NewPedanticRegistry()
	require.NoError(t, direct.Register(prom.NewCollector(sources...)))
	histograms, err := producer.New(producer.Config{}, sources...)
	require.NoError(t, err)
	around := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(around), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(), otelprom.WithProducer(histograms))
	require.NoError(t, err)
	sdk.NewMeterProvider(sdk.WithReader(exporter))

	want := gather(t, around)
	got := slices.DeleteFunc(gather(t, direct), func(f *dto.MetricFamily) bool { return !isHistogram(f) })
	distributions := distributions()
	require.Len(t, want, len(distributions))
	require.Len(t, got, len(distributions))
	counts := map[string]uint64{}
	for k, f := range got {
		require.Len(t, want[k].Metric, len(f.Metric), f.GetName())
		for n, m := range f.Metric {
			id := f.GetName()
			for _, l := range m.Label {
				id += " " + l.GetValue()
			}
			require.Len(t, m.Histogram.Bucket, len(distributions[f.GetName()].Bounds), id)
			m.Histogram.Bucket = nil
			require.Equal(t, decodeBuckets(want[k].Metric[n].Histogram), decodeBuckets(m.Histogram), id)
			counts[id] = m.Histogram.GetSampleCount()
		}
		require.Equal(t, want[k].String(), f.String(), "expected: by the producer, actual: by prom")
	}
	return counts
}

// distributions returns the distributions of the library by their names in Prometheus.
func distributions() map[string]*stat.Instrument {
	all := map[string]*stat.Instrument{}
	for _, i := range catalogue() {
		if i.Kind == stat.Distribution {
			all[strings.ReplaceAll(i.Name, ".", "_")+"_seconds"] = i
		}
	}
	return all
}

// decodeBuckets removes the buckets from the histogram, because the same buckets can be written in
// several forms. It returns the counts of the buckets that are not empty, by the number of the
// bucket.
func decodeBuckets(h *dto.Histogram) map[int32]int64 {
	counts, index, count, deltas := map[int32]int64{}, int32(0), int64(0), h.PositiveDelta
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			if count != 0 {
				counts[index] = count
			}
			index++
		}
	}
	h.PositiveSpan, h.PositiveDelta = nil, nil
	return counts
}
