package alert_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/friend"
)

// noData returns the reasons that the metrics of a monitor show, with the number of alerts.
func noData(m *alert.Monitor) map[string]float64 {
	reasons := map[string]float64{}
	shown := metricsOf(m)
	for _, why := range []string{"no_value", "no_calls", "few_calls", "too_early", "error"} {
		if n, ok := shown["weir.alert.no_data|x||"+why]; !ok || n != 0 {
			reasons[why] = n
		}
	}
	return reasons
}

func TestReasonForNoData(t *testing.T) {
	latency := breaker.New("x", breaker.Config{Latency: true})
	for name, c := range map[string]struct {
		value alert.Value
		when  alert.Condition
		want  map[string]float64
	}{
		"failure rate":           {alert.FailureRate(&totals{}, s), alert.Above(0.5), map[string]float64{"no_calls": 1}},
		"slow rate":              {alert.SlowRate(&totals{}, s), alert.Above(0.5), map[string]float64{"no_calls": 1}},
		"burn rate":              {alert.BurnRate(&totals{}, 0.99, time.Hour, time.Minute), alert.Above(2), map[string]float64{"no_calls": 1}},
		"quantile":               {alert.Quantile(latency, 0.5, s), alert.Above(2), map[string]float64{"no_calls": 1}},
		"rate":                   {alert.Rate(&totals{}, time.Minute), alert.Above(2), map[string]float64{"too_early": 1}},
		"few refusals":           {alert.Refusals(&totals{}, time.Minute), alert.Below(2), map[string]float64{"too_early": 1}},
		"many refusals":          {alert.Refusals(&totals{}, time.Minute), alert.Above(2), map[string]float64{}},
		"gauge":                  {alert.Gauge(math.NaN), alert.Above(0), map[string]float64{"no_value": 1}},
		"gauge that is infinite": {alert.Gauge(func() float64 { return math.Inf(1) }), alert.Above(0), map[string]float64{"error": 1}},
		"gauge that panics":      {alert.Gauge(func() float64 { panic("x") }), alert.Above(0), map[string]float64{"error": 1}},
		"gauge with a value":     {alert.Gauge(func() float64 { return 0 }), alert.Above(0), map[string]float64{}},
		"members with and without": {alert.Each(maps.All(map[string]float64{"a": 1, "b": math.NaN(), "c": math.NaN()}), func(v float64) alert.Value {
			return alert.Gauge(func() float64 { return v })
		}), alert.Above(0), map[string]float64{"no_value": 2}},
	} {
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{Name: "x", Value: c.value, When: c.when})
		require.Empty(t, noData(m), "%s: before the first evaluation", name)
		m.Evaluate(time.Now())
		require.Equal(t, c.want, noData(m), name)
	}
}

// A service fails, and then gets no calls.
func TestAlertSaysWhyItHasNoData(t *testing.T) {
	for policy, want := range map[alert.NoData]string{
		alert.KeepLast: "firing: failure rate over 1m was 0.75, alerts above 0.5; no data now: no calls in the span, keeping the last verdict",
		alert.Resolve:  "resolved: failure rate over 1m was 0.75, alerts above 0.5; no data now: no calls in the span, which counts as good",
		alert.Fire:     "firing: failure rate over 1m was 0.75, alerts above 0.5; no data now: no calls in the span, which counts as bad",
	} {
		calls, start := &totals{}, time.Now()
		m := alert.NewMonitor(alert.Config{}, alert.Rule{
			Name: "x", Value: alert.FailureRate(calls, time.Minute), When: alert.Above(0.5), NoData: policy, MinCalls: 4,
		})
		at := func(d time.Duration) alert.Alert {
			m.Evaluate(start.Add(d))
			return m.Alerts()[0]
		}
		m.Evaluate(start)
		calls.Failures, calls.Successes = 3, 1
		a := at(s)
		require.Equal(t, "x: firing: failure rate over 1m is 0.75, alerts above 0.5", a.String())
		require.Empty(t, a.NoData)
		a = at(2 * time.Minute)
		require.Equal(t, "x: "+want, a.String())
		require.Equal(t, "no calls in the span", a.NoData)
		require.Equal(t, 0.75, a.Value)
		calls.Failures += 3
		a = at(2*time.Minute + s)
		require.Equal(t, "3 calls in the span, fewer than MinCalls, 4", a.NoData)
		require.Equal(t, map[string]float64{"few_calls": 1}, noData(m))
		calls.Failures++
		a = at(2*time.Minute + 2*s)
		require.Empty(t, a.NoData)
		require.Empty(t, noData(m))
	}
}

func TestMemberThatIsGoneIsNotWithoutData(t *testing.T) {
	members := map[string]float64{"a": 1}
	m := alert.NewMonitor(alert.Config{}, alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(members), func(float64) alert.Value {
		return alert.Gauge(func() float64 { return members["a"] })
	})})
	m.Evaluate(time.Now())
	members["a"] = math.NaN()
	m.Evaluate(time.Now())
	require.Equal(t, "no value", m.Alerts()[0].NoData)
	delete(members, "a")
	m.Evaluate(time.Now())
	require.Equal(t, alert.Resolved, m.Alerts()[0].State)
	require.Empty(t, m.Alerts()[0].NoData)
	require.Empty(t, noData(m))
}

// The live page shows one reason per rule.
func TestRuleSaysWhyItHasNoData(t *testing.T) {
	nan, one := math.NaN(), 1.0
	for name, c := range map[string]struct {
		members map[string]float64
		policy  alert.NoData
		want    string
	}{
		"no members":            {nil, alert.KeepLast, "no members"},
		"all have data":         {map[string]float64{"a": one}, alert.KeepLast, ""},
		"one of two has data":   {map[string]float64{"a": one, "b": nan}, alert.KeepLast, ""},
		"none has data":         {map[string]float64{"a": nan, "b": nan}, "", "no value, keeping the last verdict"},
		"most are infinite":     {map[string]float64{"a": nan, "b": math.Inf(1), "c": math.Inf(1)}, alert.Fire, "the rule failed, which counts as bad"},
		"most are not a number": {map[string]float64{"a": nan, "b": nan, "c": math.Inf(1)}, alert.Resolve, "no value, which counts as good"},
	} {
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
			Name: "x", When: alert.Above(2), NoData: c.policy,
			Value: alert.Each(maps.All(c.members), func(v float64) alert.Value { return alert.Gauge(func() float64 { return v }) }),
		})
		shown := func() string {
			return alert.Inside(friend.Key{}).Rules(m)[0].NoData
		}
		require.Empty(t, shown(), "%s: before the first evaluation", name)
		m.Evaluate(time.Now())
		require.Equal(t, c.want, shown(), name)
	}
}

// There is a value, but it is computed from too few calls for a verdict.
func TestRuleWithTooFewCallsHasNoData(t *testing.T) {
	calls, start := &totals{}, time.Now()
	m := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "x", Value: alert.FailureRate(calls, time.Minute), When: alert.Above(0.5), MinCalls: 4,
	})
	m.Evaluate(start)
	calls.Failures = 3
	m.Evaluate(start.Add(s))
	require.Equal(t, "fewer calls than MinCalls, keeping the last verdict", alert.Inside(friend.Key{}).Rules(m)[0].NoData)
	require.Empty(t, m.Alerts())
}
