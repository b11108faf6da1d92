package alert_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

// Each rule has one fault, and the error names no fault that follows from it.
func TestEachFaultIsReportedOnce(t *testing.T) {
	one := func(int) alert.Value { return alert.Gauge(func() float64 { return 1 }) }
	burn := func(slo float64) alert.Value { return alert.BurnRate(&totals{}, slo, time.Hour, 5*time.Minute) }
	quantile := func(q float64) alert.Value { return alert.Quantile(&timedSource{}, q, s) }
	labelled := func(name string) alert.Rule {
		return alert.Rule{Value: alert.Gauge(func() float64 { return 1 }), Labels: map[string]string{name: "x"}}
	}
	for _, test := range []struct {
		rule alert.Rule
		want string
	}{
		{alert.Rule{Value: alert.BurnRate(nil, 0.99, time.Hour, time.Minute)}, "Value: the source is nil"},
		{alert.Rule{Value: burn(0)}, "Value: slo is 0, must lie between 0 and 1"},
		{alert.Rule{Value: burn(-1)}, "Value: slo is -1, must lie between 0 and 1"},
		{alert.Rule{Value: burn(1)}, "Value: slo is 1, must lie between 0 and 1"},
		{alert.Rule{Value: burn(2)}, "Value: slo is 2, must lie between 0 and 1"},
		{alert.Rule{Value: burn(math.NaN())}, "Value: slo is NaN, must lie between 0 and 1"},
		{alert.Rule{Value: alert.BurnRate(&totals{}, 0.99, time.Hour, time.Hour)}, "Value: the spans are 1h0m0s and 1h0m0s, the first must be longer"},
		{alert.Rule{Value: quantile(-0.5)}, "Value: the quantile is -0.5, must lie between 0 and 1"},
		{alert.Rule{Value: quantile(1.5)}, "Value: the quantile is 1.5, must lie between 0 and 1"},
		{alert.Rule{Value: quantile(math.NaN())}, "Value: the quantile is NaN, must lie between 0 and 1"},
		{alert.Rule{Value: alert.Each[string](nil, one)}, "Value: the members or the function are nil"},
		{alert.Rule{Value: alert.Each(maps.All(map[string]int{}), nil)}, "Value: the members or the function are nil"},
		{labelled("alertname"), `Labels has "alertname", which is set by the monitor`},
		{labelled("severity"), `Labels has "severity", which is set by the monitor`},
		{labelled("key"), `Labels has "key", which is set by the monitor`},
	} {
		test.rule.Name, test.rule.When = "bad", alert.Above(14.4)
		require.EqualError(t, alert.Config{}.Validate(test.rule), `alert: rule "bad": `+test.want)
	}
}

func TestValidRules(t *testing.T) {
	for name, value := range map[string]alert.Value{
		"Rate":       alert.Rate(&totals{}, time.Minute),
		"Quantile 0": alert.Quantile(&timedSource{}, 0, time.Minute),
		"Quantile 1": alert.Quantile(&timedSource{}, 1, time.Minute),
	} {
		require.NoError(t, alert.Config{}.Validate(alert.Rule{Name: name, Value: value, When: alert.Above(2), MinCalls: 10}), name)
	}
	require.NoError(t, alert.Config{}.Validate(alert.Rule{Name: "Refusals", Value: alert.Refusals(&totals{}, time.Minute), When: alert.Above(2)}))
}

func TestValuesWithoutCallsAreNotAnError(t *testing.T) {
	for name, value := range map[string]alert.Value{
		"Rate":        alert.Rate(&totals{}, time.Minute),
		"FailureRate": alert.FailureRate(&totals{}, time.Minute),
		"SlowRate":    alert.SlowRate(&totals{}, time.Minute),
	} {
		v := newValueReader(value)
		v.requireNone(t, 0)
		require.Equal(t, 1.0, evaluations(v.monitor, "seen", ""), name)
	}
}

func TestNestedEachIsInvalid(t *testing.T) {
	members := map[string]int{"a": 1}
	inner := alert.Each(maps.All(members), func(int) alert.Value { return alert.Gauge(func() float64 { return 1 }) })
	v := newValueReader(alert.Each(maps.All(members), func(int) alert.Value { return inner }))
	v.requireNone(t, 0)
	require.Equal(t, 1.0, evaluations(v.monitor, "seen", "panic"))
}

func TestSpanOfDaysHasHourBuckets(t *testing.T) {
	calls := &totals{}
	const week = 7 * 24 * time.Hour
	v := newValueReader(alert.FailureRate(calls, week))
	v.requireNone(t, 0)
	calls.Failures = 1
	v.require(t, 59*time.Minute+50*s, 1)
	v.require(t, week-s, 1)
	v.requireNone(t, week) // the call leaves with its bucket, the first hour
}

// A call leaves its span early by at most a sixtieth of the span, and never late.
func TestSpanIsExactToASixtieth(t *testing.T) {
	for _, seen := range []time.Duration{s, 59 * s, 60 * s, 61 * s, 119 * s, 1799 * s, 3599 * s, 3600 * s} {
		calls := &totals{}
		v := newValueReader(alert.FailureRate(calls, time.Hour))
		v.requireNone(t, 0)
		calls.Failures = 1
		v.require(t, seen, 1)
		v.require(t, seen+59*time.Minute, 1)
		v.requireNone(t, seen+time.Hour)
	}
}

func TestQuantileSpanIsExactToATwelfth(t *testing.T) {
	for _, seen := range []time.Duration{s, 9 * s, 10 * s, 11 * s, 59 * s, 119 * s, 120 * s, 121 * s} {
		calls := newTimedSource()
		v := newValueReader(alert.Quantile(calls, 0.5, 2*time.Minute))
		v.requireNone(t, 0)
		calls.record(0, time.Second)
		for _, at := range []time.Duration{seen, seen + 110*s} {
			_, ok := v.at(at)
			require.True(t, ok, "data at %v, of calls seen at %v", at, seen)
		}
		v.requireNone(t, seen+120*s)
	}
}

// A rule that always panics never has data.
func TestNoDataFireWithoutAnyData(t *testing.T) {
	m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
		Name: "x", When: alert.Above(0), NoData: alert.Fire, Value: alert.Gauge(func() float64 { panic("broken") }),
	})
	m.Evaluate(time.Now())
	require.Len(t, m.Alerts(), 1)
	require.Equal(t, alert.Firing, m.Alerts()[0].State)
	require.Equal(t, 1.0, metricsOf(m)[instrument.AlertState.Name+"|x||firing"])
}

func TestTransitionsAreCountedByNewState(t *testing.T) {
	p := newRuleProbe(alert.Rule{When: alert.Above(5), For: 10 * s})
	for _, step := range []struct {
		at    time.Duration
		value float64
	}{
		{0, 1}, {1 * s, 6}, {5 * s, 6}, {11 * s, 6}, {12 * s, 6}, {13 * s, 1}, {14 * s, 1}, {15 * s, 6}, {16 * s, 1},
	} {
		p.at(step.at, sampleOf(step.value))
	}
	for state, want := range map[string]float64{"pending": 2, "firing": 1, "inactive": 2} {
		require.Equal(t, want, metricsOf(p.monitor)[instrument.AlertTransitions.Name+"|probe||"+state], state)
	}
}

// Receivers see only the wall clock, so the times of an alert have no monotonic reading.
func TestAlertTimesHaveNoMonotonicClock(t *testing.T) {
	m := alert.NewMonitor(alert.Config{}, alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Bool(func() bool { return true })})
	m.Evaluate(time.Now())
	a := m.Alerts()[0]
	require.Equal(t, a.ActiveAt.Round(0), a.ActiveAt)
	require.Equal(t, a.StartsAt.Round(0), a.StartsAt)
}
