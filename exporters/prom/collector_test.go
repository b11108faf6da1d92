package prom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

const wantPage = `
	# HELP weir_alert_evaluations_total Evaluations of the rule, by kind of error if one failed.
	# TYPE weir_alert_evaluations_total counter
	weir_alert_evaluations_total{error_type="",weir_alert_rule="errors",weir_alert_severity="page"} 7
	# HELP weir_alert_last_evaluation_timestamp_seconds Unix time of the last evaluation.
	# TYPE weir_alert_last_evaluation_timestamp_seconds gauge
	weir_alert_last_evaluation_timestamp_seconds{weir_alert_rule="errors",weir_alert_severity="page"} 1.5e+09
	# HELP weir_alert_value Value at the last evaluation. Absent if there was none.
	# TYPE weir_alert_value gauge
	weir_alert_value{weir_alert_rule="errors",weir_alert_severity="page"} 0.75
	# HELP weir_breaker_calls_total Calls, by outcome.
	# TYPE weir_breaker_calls_total counter
	weir_breaker_calls_total{weir_breaker_name="payments",weir_breaker_outcome="success",weir_group_key=""} 12
	# HELP weir_breaker_state 1 for the current state of the breaker, 0 for the other states.
	# TYPE weir_breaker_state gauge
	weir_breaker_state{weir_breaker_name="payments",weir_breaker_state="closed",weir_group_key=""} 1
	weir_breaker_state{weir_breaker_name="payments",weir_breaker_state="open",weir_group_key=""} 0
	# HELP weir_breaker_state_time_seconds_total Time spent in each state.
	# TYPE weir_breaker_state_time_seconds_total counter
	weir_breaker_state_time_seconds_total{weir_breaker_name="payments",weir_breaker_state="open",weir_group_key=""} 1.5
	# HELP weir_breaker_window_calls Calls in the window, by outcome.
	# TYPE weir_breaker_window_calls gauge
	weir_breaker_window_calls{weir_breaker_name="payments",weir_breaker_outcome="failure",weir_group_key=""} 3
	# HELP weir_breaker_window_failure_ratio Failed share of the calls in the window. Absent below the minimum of calls.
	# TYPE weir_breaker_window_failure_ratio gauge
	weir_breaker_window_failure_ratio{weir_breaker_name="payments",weir_group_key=""} 0.25
	# HELP weir_exporter_skipped_samples_total Samples that were left out, by what is wrong with their series.
	# TYPE weir_exporter_skipped_samples_total counter
	weir_exporter_skipped_samples_total{weir_exporter_reason="duplicate"} 0
	weir_exporter_skipped_samples_total{weir_exporter_reason="malformed"} 0
	weir_exporter_skipped_samples_total{weir_exporter_reason="unknown"} 0
	# HELP weir_exporter_source_panics_total Panics of sources while they were read.
	# TYPE weir_exporter_source_panics_total counter
	weir_exporter_source_panics_total 0
`

func TestNamesTypesAndLabels(t *testing.T) {
	source := newFakeSource(
		point{instrumentNamed("weir.breaker.state").Series("payments", "closed", ""), 1},
		point{instrumentNamed("weir.breaker.state").Series("payments", "open", ""), 0},
		point{instrumentNamed("weir.breaker.calls").Series("payments", "success", ""), 12},
		point{instrumentNamed("weir.breaker.state_time").Series("payments", "open", ""), 1.5},
		point{instrumentNamed("weir.breaker.window.failure_ratio").Series("payments", ""), 0.25},
		point{instrumentNamed("weir.breaker.window.calls").Series("payments", "failure", ""), 3},
		point{instrumentNamed("weir.alert.value").Series("errors", "page"), 0.75},
		point{instrumentNamed("weir.alert.evaluations").Series("errors", "page", ""), 7},
		point{instrumentNamed("weir.alert.last_evaluation.timestamp").Series("errors", "page"), 1.5e9},
	)
	require.NoError(t, testutil.CollectAndCompare(prom.NewCollector(source), strings.NewReader(wantPage)))
}

func TestEveryInstrumentPassesLinters(t *testing.T) {
	_, r := register(t, sourceOfAllInstruments())
	problems, err := testutil.GatherAndLint(r)
	require.NoError(t, err)
	require.Empty(t, problems)
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, len(catalogue()))
}

func TestDescribeSendsAllInstrumentsWithoutSources(t *testing.T) {
	descs := func(c *prom.Collector) (list []string) {
		ch := make(chan *prometheus.Desc, 100)
		c.Describe(ch)
		close(ch)
		for d := range ch {
			list = append(list, d.String())
		}
		return list
	}
	c := prom.NewCollector()
	before := descs(c)
	require.Len(t, before, len(catalogue()))
	require.NoError(t, c.Add(sourceOfAllInstruments()))
	require.Equal(t, before, descs(c), "a collector whose descriptors change cannot be unregistered")
}

func TestSourceGivenTwiceIsExportedOnce(t *testing.T) {
	b := newFakeSource(slowCallsPoint("a", 3))
	gate := newFakeSource(b.points[0], point{instrumentNamed("weir.limiter.requests").Series("a", "allowed"), 5})
	_, r := register(t, gate, b, b, gate)
	require.Equal(t, []string{
		`weir_breaker_slow_calls_total{weir_breaker_name="a",weir_group_key=""} 3`,
		`weir_limiter_requests_total{weir_limiter_name="a",weir_limiter_outcome="allowed"} 5`,
	}, scrape(t, r))
	require.Zero(t, skippedSamples(t, r, "duplicate"))
}

func TestCountersHaveACreationTime(t *testing.T) {
	began := time.Date(2026, 9, 1, 12, 0, 0, 5, time.UTC)
	counter, unsaid, gauge := slowCallsPoint("a", 1), slowCallsPoint("b", 2), point{instrumentNamed("weir.limiter.limit").Series("a"), 3}
	counter.series.Created, unsaid.series.Created, gauge.series.Created = began, time.Time{}, began
	source := newFakeSource(counter, unsaid, gauge)
	source.spreads = []seriesHistogram{{instrumentNamed("weir.breaker.call.duration").Series("a", ""), stat.Histogram{Sum: 7}}}
	source.spreads[0].series.Created = began
	_, r := register(t, source)
	for range 2 {
		families, err := r.Gather()
		require.NoError(t, err)
		got := map[float64]time.Time{}
		for _, f := range families {
			for _, m := range f.Metric {
				if at := m.GetCounter().GetCreatedTimestamp(); at != nil && !strings.HasPrefix(f.GetName(), "weir_exporter_") {
					got[m.Counter.GetValue()] = at.AsTime()
				}
				if m.Histogram != nil {
					got[m.Histogram.GetSampleSum()] = m.Histogram.GetCreatedTimestamp().AsTime()
				}
			}
		}
		require.Equal(t, map[float64]time.Time{1: began, 7: began}, got)
	}
}

func TestWrappedRegistererAddsItsLabels(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	wrapped := prometheus.WrapRegistererWith(prometheus.Labels{"a": "first", "z": "last"}, r)
	require.NoError(t, wrapped.Register(prom.NewCollector(newFakeSource(slowCallsPoint("a", 1)))))
	for range 3 {
		require.Equal(t, []string{`weir_breaker_slow_calls_total{a="first",weir_breaker_name="a",weir_group_key="",z="last"} 1`}, scrape(t, r))
	}
}

func TestUnusualNamesRoundTrip(t *testing.T) {
	names := []string{`quo"ted`, "two\nlines", `back\slash`, "bad\xffbyte", strings.Repeat("long", 2500), "", "{}=,", "流量"}
	source := &fakeSource{}
	for n, name := range names {
		// Instrument.Series would have replaced the invalid byte.
		source.points = append(source.points, point{&stat.Series{Instrument: instrumentNamed("weir.breaker.slow_calls"), Values: []string{name, ""}}, float64(n)})
	}
	_, r := register(t, source)
	families, err := r.Gather()
	require.NoError(t, err)
	got := make([]string, len(names))
	for _, f := range families {
		if f.GetName() == "weir_breaker_slow_calls_total" {
			for _, m := range f.Metric {
				got[int(m.Counter.GetValue())] = m.Label[0].GetValue()
			}
		}
	}
	names[3] = "bad\uFFFDbyte"
	require.Equal(t, names, got)
	require.Len(t, scrape(t, r), len(names), "one line per name")
}

func TestAllocationsOfCollectDoNotGrow(t *testing.T) {
	allocs := func(breakers int) float64 {
		sources := make([]stat.Source, breakers)
		for n := range sources {
			sources[n] = fixedSource(breakerSource(strings.Repeat("b", n+1)).points)
		}
		c := prom.NewCollector(sources...)
		ch := make(chan prometheus.Metric, 40*breakers+10)
		return testing.AllocsPerRun(100, func() {
			c.Collect(ch)
			for len(ch) > 0 {
				<-ch
			}
		})
	}
	require.LessOrEqual(t, allocs(2), 7.0+raceAllocs)
	require.LessOrEqual(t, allocs(100), 7.0+raceAllocs)
}

// fixedSource is a source that does not allocate.
type fixedSource []point

func (s fixedSource) Observe(yield func(*stat.Series, float64) bool) {
	for _, p := range s {
		if !yield(p.series, p.value) {
			return
		}
	}
}
