package alert_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/window"
)

// valueReader reads a value through the metrics of a rule over it.
type valueReader struct {
	monitor *alert.Monitor
	start   time.Time
}

func newValueReader(v alert.Value) *valueReader {
	r := alert.Rule{Name: "seen", Value: v, When: alert.Above(0)}
	return &valueReader{alert.NewMonitor(alert.Config{Logger: discardLogger()}, r), time.Now()}
}

// at evaluates and returns the value; ok is false if there is no data.
func (v *valueReader) at(d time.Duration) (float64, bool) {
	v.monitor.Evaluate(v.start.Add(d))
	value, ok := metricsOf(v.monitor)[instrument.AlertValue.Name+"|seen|"]
	return value, ok
}

func (v *valueReader) require(t *testing.T, at time.Duration, want float64) {
	t.Helper()
	got, ok := v.at(at)
	require.True(t, ok, "data at %v", at)
	require.InDelta(t, want, got, 1e-9, "at %v", at)
}

func (v *valueReader) requireNone(t *testing.T, at time.Duration) {
	t.Helper()
	got, ok := v.at(at)
	require.False(t, ok, "at %v: %v, want no data", at, got)
}

func TestFailureRateOverItsOwnSpan(t *testing.T) {
	calls := &totals{Successes: 1000, Failures: 1000}
	v := newValueReader(alert.FailureRate(calls, time.Minute))
	v.requireNone(t, 0) // earlier calls do not count
	calls.Successes += 30
	calls.Failures += 8
	calls.Refused += 2
	calls.Ignored += 100
	v.require(t, 5*s, 0.25)
	v.require(t, 59*s, 0.25)
	calls.Successes += 10
	v.require(t, 60*s, 0.2)
	v.require(t, 66*s, 0) // only the last ten are left
	v.requireNone(t, 10*time.Minute)
}

func TestSlowRate(t *testing.T) {
	calls := &totals{}
	v := newValueReader(alert.SlowRate(calls, time.Minute))
	v.requireNone(t, 0)
	*calls = totals{Successes: 6, Failures: 2, Slow: 2, Refused: 10}
	v.require(t, s, 0.25)
	v.requireNone(t, 2*time.Minute)
}

func TestRateBeforeAWholeSpan(t *testing.T) {
	calls := &totals{Successes: 500}
	v := newValueReader(alert.Rate(calls, time.Minute))
	v.requireNone(t, 0)
	calls.Successes += 15
	calls.Refused += 5
	v.require(t, 10*s, 2)
	v.require(t, 20*s, 1)
	v.require(t, 60*s, 20.0/60)
	v.require(t, 10*time.Minute, 0)
}

func TestRefusals(t *testing.T) {
	calls := &totals{Refused: 7}
	refusals := newValueReader(alert.Refusals(calls, time.Minute))
	refusals.require(t, 0, 0)
	*calls = totals{Successes: 3, Failures: 4, Refused: 12}
	refusals.require(t, s, 5)
	refusals.require(t, 10*time.Minute, 0)
}

// Soon after the start few refusals are counted because the monitor has not run for long, not
// because few calls were refused.
func TestBelowRefusalsNeedsAWholeSpan(t *testing.T) {
	calls := &totals{}
	m := alert.NewMonitor(alert.Config{}, alert.Rule{Name: "few", Value: alert.Refusals(calls, time.Minute), When: alert.Below(10)})
	start := time.Now()
	m.Evaluate(start)
	m.Evaluate(start.Add(59 * s))
	require.Empty(t, m.Alerts(), "before the span has passed")
	m.Evaluate(start.Add(60 * s))
	require.Equal(t, alert.Firing, m.Alerts()[0].State, "after it")
}

func TestBoolAndGauge(t *testing.T) {
	open, level := false, 3.5
	truth, gauge := newValueReader(alert.Bool(func() bool { return open })), newValueReader(alert.Gauge(func() float64 { return level }))
	truth.require(t, 0, 0)
	gauge.require(t, 0, 3.5)
	open, level = true, -1
	truth.require(t, s, 1)
	gauge.require(t, s, -1)
}

func TestSpansOfDays(t *testing.T) {
	calls := &totals{}
	v := newValueReader(alert.FailureRate(calls, 7*24*time.Hour))
	v.requireNone(t, 0)
	calls.Failures = 1
	v.require(t, time.Hour, 1)
	calls.Successes = 3
	v.require(t, 6*24*time.Hour, 0.25)
	v.require(t, 8*24*time.Hour, 0)
}

func TestEachWatchesEveryMember(t *testing.T) {
	hosts := map[string]*totals{"a": {Successes: 100}, "b": {}}
	m := alert.NewMonitor(alert.Config{Instance: "a:1"}, alert.Rule{
		Name: "errors", When: alert.Above(0.5), Severity: "page", Labels: map[string]string{"team": "shop"},
		Value: alert.Each(maps.All(hosts), func(c *totals) alert.Value { return alert.FailureRate(c, time.Minute) }),
	})
	at := time.Now()
	evaluate := func() (found []string) {
		at = at.Add(5 * s)
		m.Evaluate(at)
		for _, a := range m.Alerts() {
			found = append(found, a.Key+" "+string(a.State))
		}
		return found
	}
	require.Empty(t, evaluate())
	hosts["b"].Failures = 3
	require.Equal(t, []string{"b firing"}, evaluate())
	require.Equal(t, map[string]string{"alertname": "errors", "severity": "page", "team": "shop", "instance": "a:1", "key": "b"}, m.Alerts()[0].Labels)

	hosts["c"] = &totals{Failures: 1}
	require.Equal(t, []string{"b firing"}, evaluate(), "a new member starts from its current totals")
	hosts["c"].Failures++
	require.Equal(t, []string{"b firing", "c firing"}, evaluate())
	require.NotEqual(t, m.Alerts()[0].ID, m.Alerts()[1].ID)
	require.Equal(t, "errors (c): firing: failure rate over 1m is 1, alerts above 0.5", m.Alerts()[1].String())
	require.Equal(t, 2.0, metricsOf(m)[instrument.AlertState.Name+"|errors|page|firing"])
	require.Equal(t, 1.0, metricsOf(m)[instrument.AlertState.Name+"|errors|page|inactive"])
	require.Equal(t, 1.0, metricsOf(m)[instrument.AlertValue.Name+"|errors|page"], "the worst")

	hosts["c"] = &totals{}
	delete(hosts, "b")
	require.Equal(t, []string{"b resolved", "c firing"}, evaluate(), "one member is gone, one was replaced and has no data yet")
	hosts["c"].Successes = 1
	require.Equal(t, []string{"b resolved", "c resolved"}, evaluate())
	at = at.Add(16 * time.Minute)
	require.Empty(t, evaluate())
	require.Equal(t, 2.0, metricsOf(m)[instrument.AlertState.Name+"|errors|page|inactive"], "only a and c are left")
}

// The test runs in a synctest bubble, so that no evaluation reaches its timeout on a slow machine.
func TestEachIsBounded(t *testing.T) { synctest.Test(t, testEachIsBounded) }

func testEachIsBounded(t *testing.T) {
	members := map[string]*totals{}
	for i := range 1000 {
		members[string(rune('a'+i%26))+time.Duration(i).String()] = &totals{}
	}
	m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
		Name: "calls", When: alert.Above(0),
		Value: alert.Each(maps.All(members), func(c *totals) alert.Value { return alert.Rate(c, time.Minute) }),
	})
	m.Evaluate(time.Now())
	members["one more"], members["and another"] = &totals{}, &totals{}
	for calls := range 2 { // a new member has no rate at its first evaluation
		for _, c := range members {
			c.Successes = int64(1 + calls)
		}
		time.Sleep(time.Second)
		m.Evaluate(time.Now())
	}
	require.Len(t, m.Alerts(), 1000)
	for _, a := range m.Alerts() {
		require.NotContains(t, []string{"one more", "and another"}, a.Key, "watched members stay")
	}
	require.Equal(t, 2.0, metricsOf(m)[instrument.AlertEvaluations.Name+"|calls||too_many_members"])
}

func TestInvalidMemberValueIsAnErrorOfTheRule(t *testing.T) {
	members := map[string]*totals{"a": {}}
	inner := alert.Each(maps.All(members), func(*totals) alert.Value { return alert.Value{} })
	for name, value := range map[string]alert.Value{"unset": {}, "invalid": alert.FailureRate(members["a"], -1), "nested": inner} {
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
			Name: name, When: alert.Above(0), Value: alert.Each(maps.All(members), func(*totals) alert.Value { return value }),
		})
		m.Evaluate(time.Now())
		require.Equal(t, 1.0, metricsOf(m)[instrument.AlertEvaluations.Name+"|"+name+"||panic"], name)
	}
}

var _ alert.Counted = (*window.Calls)(nil)
