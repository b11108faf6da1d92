package prom_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

var queueLength = &stat.Instrument{Name: "shop.queue.length", Unit: "{order}", Help: "Orders that wait.", Kind: stat.UpDown}

func TestRegisterRefuses(t *testing.T) {
	instrument := func(name string, kind stat.Kind, attrs ...string) stat.Source {
		i := &stat.Instrument{Name: name, Help: "Help.", Kind: kind, Attrs: attrs}
		return newFakeSource(point{i.Series(make([]string, len(attrs))...), 1})
	}
	for what, c := range map[string]struct {
		sources []stat.Source
		want    string
	}{
		"what no set takes": {
			[]stat.Source{breakerSource("a"), breakerSource("a")},
			`stat: two different series are weir.breaker.state{weir.breaker.name="a", weir.breaker.state="closed", weir.group.key=""}: ` +
				`each source needs a name of its own (and 39 more series with faults)`,
		},
		"one name to Prometheus": {
			[]stat.Source{instrument("shop.x", stat.Gauge), instrument("shop_x", stat.UpDown)},
			`prom: the instruments shop.x and shop_x have the same Prometheus name shop_x`,
		},
		"one name to Prometheus, by way of a histogram's lines": {
			[]stat.Source{instrument("shop.x.count", stat.Gauge), &fakeSource{spreads: []seriesHistogram{
				{(&stat.Instrument{Name: "shop.x", Help: "Help.", Kind: stat.Distribution}).Series(), stat.Histogram{}},
			}}},
			`prom: the instruments shop.x.count and shop.x have the same Prometheus name shop_x_count`,
		},
		"one label to Prometheus": {
			[]stat.Source{instrument("shop.x", stat.Gauge, "a.b", "a_b")},
			`prom: duplicate label names in constant and variable labels for metric "shop_x"`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, refused := prometheus.NewPedanticRegistry(), prom.NewCollector(c.sources...)
			require.ErrorContains(t, r.Register(refused), c.want)
			require.Empty(t, scrape(t, r))

			require.ErrorContains(t, refused.Add(newFakeSource(slowCallsPoint("b", 1))), c.want)
			refused.Remove(c.sources...)
			ch := make(chan prometheus.Metric, 1)
			refused.Collect(ch)
			require.ErrorContains(t, (<-ch).Write(nil), c.want, "collecting returns the error")
		})
	}
}

func TestUserDefinedInstrumentsAreExported(t *testing.T) {
	_, r := register(t, newFakeSource(point{queueLength.Series(), 4}), newFakeSource(slowCallsPoint("a", 1)))
	require.Equal(t, []string{`shop_queue_length 4`, `weir_breaker_slow_calls_total{weir_breaker_name="a",weir_group_key=""} 1`}, scrape(t, r))

	keyed := &stat.Instrument{Name: "shop.stock", Help: "Stock.", Kind: stat.Gauge, Attrs: []string{"item"}}
	twin := *keyed
	_, r = register(t, newFakeSource(point{keyed.Series("nut"), 1}), newFakeSource(point{twin.Series("bolt"), 2}))
	require.Equal(t, []string{`shop_stock{item="bolt"} 2`, `shop_stock{item="nut"} 1`}, scrape(t, r), "equal instruments are merged")
}

func TestInvalidSeriesThatAppearLaterAreSkipped(t *testing.T) {
	good := slowCallsPoint("a", 1)
	source := newFakeSource(good)
	_, r := register(t, source)
	for reason, bad := range map[string]*stat.Series{
		"malformed": {Instrument: instrumentNamed("weir.breaker.calls")},
		"unknown":   queueLength.Series(),
		"duplicate": instrumentNamed("weir.exporter.source_panics").Series(),
	} {
		require.Zero(t, skippedSamples(t, r, reason))
		source.setPoints(point{bad, 1}, good, point{bad, 2})
		require.Equal(t, []string{`weir_breaker_slow_calls_total{weir_breaker_name="a",weir_group_key=""} 1`}, scrape(t, r))
		source.setPoints(good)
		require.Equal(t, 2, skippedSamples(t, r, reason))
	}
}

func TestPanickingSourceHidesNoOther(t *testing.T) {
	log := captureLog(t)
	bad := &fakeSource{points: []point{slowCallsPoint("bad", 1)}}
	_, r := register(t, bad, newFakeSource(slowCallsPoint("good", 2)))
	require.Zero(t, sourcePanics(t, r))
	bad.broken = errors.New("lost its lock")
	for n := range 3 {
		require.Equal(t, []string{
			`weir_breaker_slow_calls_total{weir_breaker_name="bad",weir_group_key=""} 1`,
			`weir_breaker_slow_calls_total{weir_breaker_name="good",weir_group_key=""} 2`,
		}, scrape(t, r))
		require.Equal(t, 2*n+2, sourcePanics(t, r))
	}
	require.Equal(t, 1, strings.Count(log.String(), "lost its lock"), "logged once: %s", log)
	require.Contains(t, log.String(), "source=*prom_test.fakeSource")

	bad.points, bad.broken = nil, nil
	require.Equal(t, []string{`weir_breaker_slow_calls_total{weir_breaker_name="good",weir_group_key=""} 2`}, scrape(t, r))
}

func skippedSamples(t *testing.T, g prometheus.Gatherer, reason string) int {
	t.Helper()
	return exporterMetric(t, g, fmt.Sprintf("weir_exporter_skipped_samples_total{weir_exporter_reason=%q}", reason))
}

func sourcePanics(t *testing.T, g prometheus.Gatherer) int {
	t.Helper()
	return exporterMetric(t, g, "weir_exporter_source_panics_total")
}

// exporterMetric scrapes once and returns one of the exporter's metrics.
func exporterMetric(t *testing.T, g prometheus.Gatherer, name string) (value int) {
	t.Helper()
	lines, err := sampleLines(g)
	require.NoError(t, err)
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err = strconv.Atoi(text)
			require.NoError(t, err)
			return value
		}
	}
	t.Fatalf("no %s among %q", name, lines)
	return 0
}

// captureLog returns the log of the test.
func captureLog(t *testing.T) *strings.Builder {
	log, before := &strings.Builder{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return log
}
