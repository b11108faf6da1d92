package alert_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/window"
)

// memberWithHistory is a member with many earlier calls: a tenth failed, a fifth were refused, and
// all took a second.
type memberWithHistory struct {
	totals
	window.Latency
}

func newMemberWithHistory() *memberWithHistory {
	v := &memberWithHistory{totals: totals{Successes: 900_000, Failures: 100_000, Slow: 900_000, Refused: 200_000}}
	v.Counts[150] = 1_000_000
	v.Max = time.Second
	return v
}

func (v *memberWithHistory) LifetimeLatency() window.Latency { return v.Latency }

// valuesOverCalls lists all values that are computed from calls. Each has a condition that the
// history of a memberWithHistory meets.
func valuesOverCalls() map[string]func(*memberWithHistory) alert.Value {
	return map[string]func(*memberWithHistory) alert.Value{
		"FailureRate": func(v *memberWithHistory) alert.Value { return alert.FailureRate(v, 5*time.Minute) },
		"SlowRate":    func(v *memberWithHistory) alert.Value { return alert.SlowRate(v, 5*time.Minute) },
		"Rate":        func(v *memberWithHistory) alert.Value { return alert.Rate(v, 5*time.Minute) },
		"Refusals":    func(v *memberWithHistory) alert.Value { return alert.Refusals(v, 5*time.Minute) },
		"Burn":        func(v *memberWithHistory) alert.Value { return alert.BurnRate(v, 0.99, time.Hour, 5*time.Minute) },
		"Quantile":    func(v *memberWithHistory) alert.Value { return alert.Quantile(v, 0.5, 5*time.Minute) },
	}
}

// watchMembers watches the members by the value. It returns a function that evaluates once and
// returns the alerts.
func watchMembers(members map[string]*memberWithHistory, value func(*memberWithHistory) alert.Value) func() []alert.Alert {
	m := alert.NewMonitor(alert.Config{Logger: discardLogger(), Budget: time.Minute}, alert.Rule{
		Name: "x", When: alert.Above(0.001), Value: alert.Each(maps.All(members), value),
	})
	at := time.Now()
	return func() []alert.Alert {
		at = at.Add(5 * s)
		m.Evaluate(at)
		return m.Alerts()
	}
}

func TestMemberThatReturnsStartsFromItsTotals(t *testing.T) {
	for name, value := range valuesOverCalls() {
		host := newMemberWithHistory()
		members := map[string]*memberWithHistory{"h": host}
		evaluate := watchMembers(members, value)
		for i := range 20 {
			members["h"] = host
			if i == 10 {
				delete(members, "h")
			}
			require.Empty(t, evaluate(), "%s: evaluation %d without calls", name, i)
		}
		members["new"] = newMemberWithHistory()
		require.Empty(t, evaluate(), "%s: a new member without calls", name)
		members["h"] = newMemberWithHistory()
		require.Empty(t, evaluate(), "%s: a replaced member without calls", name)
		members["h"].Failures, members["h"].Refused, members["h"].Slow = 200_000, 300_000, 1_000_000
		members["h"].Counts[150]++
		require.Len(t, evaluate(), 1, name)
	}
}

func TestReplacedMembersStartFromTheirTotals(t *testing.T) {
	members := map[string]*memberWithHistory{}
	for i := range 1200 {
		members[fmt.Sprint(i)] = newMemberWithHistory()
	}
	evaluate := watchMembers(members, valuesOverCalls()["FailureRate"])
	require.Empty(t, evaluate())
	require.Empty(t, evaluate())
	for i := range 300 {
		delete(members, fmt.Sprint(4*i))
	}
	require.Empty(t, evaluate())
	require.Empty(t, evaluate())
}

// A process that restarts counts from zero. It may soon have more calls of one kind than before,
// and fewer of another.
func TestRuleOverASourceThatWasReset(t *testing.T) {
	calls := &totals{Successes: 100_000, Failures: 3, Refused: 1}
	v := newValueReader(alert.FailureRate(calls, 5*time.Minute))
	v.requireNone(t, 0)
	*calls = totals{Successes: 950, Failures: 40, Refused: 10}
	v.require(t, 5*s, 0.05)
	calls.Successes += 1000
	v.require(t, 10*s, 0.025)
}

func TestPanickingMemberDoesNotStopOthers(t *testing.T) {
	panics := func(is bool) bool {
		if is {
			panic("broken")
		}
		return true
	}
	broken := false
	var log bytes.Buffer
	m := alert.NewMonitor(alert.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, alert.Rule{
		Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(map[string]int{"a": 0, "b": 1, "c": 2}), func(i int) alert.Value {
			panics(i == 0) // the member a never has a value
			return alert.Bool(func() bool { return panics(i == 1 && broken) })
		}),
	})
	at := time.Now()
	shown := func() (lines []string) {
		at = at.Add(s)
		m.Evaluate(at)
		for _, a := range m.Alerts() {
			lines = append(lines, a.String())
		}
		return lines
	}
	both := []string{"x (b): firing: boolean is 1, alerts above 0", "x (c): firing: boolean is 1, alerts above 0"}
	require.Equal(t, both, shown())
	require.Contains(t, log.String(), `level=ERROR msg="alert: rule panicked" weir.alert.rule=x weir.group.key=a panic=broken`)
	broken = true
	both[0] = "x (b): firing: boolean was 1, alerts above 0; no data now: the rule failed, keeping the last verdict"
	require.Equal(t, both, shown())
	require.Equal(t, 2.0, metricsOf(m)[instrument.AlertEvaluations.Name+"|x||panic"])
}

func TestPanickingDescriptionDoesNotStopOthers(t *testing.T) {
	m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
		Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(map[string]int{"a": 0, "b": 1}), func(int) alert.Value {
			return alert.Bool(func() bool { return true })
		}),
		Describe: func(a alert.Alert) string {
			if a.Key == "a" {
				panic("no words")
			}
			return "b is bad"
		},
	})
	m.Evaluate(time.Now())
	require.Equal(t, "boolean is 1, alerts above 0", m.Alerts()[0].Summary)
	require.Equal(t, "b is bad", m.Alerts()[1].Summary)
	require.Equal(t, 1.0, metricsOf(m)[instrument.AlertEvaluations.Name+"|x||panic"])
}

// A rule remembers 1,000 alerts of absent members. If more of them fire, the oldest resolve before
// KeepFiring has passed, and the evaluation counts as an error. Alerts that have resolved are
// forgotten first.
func TestAlertsOfAbsentMembersThatResolveEarlyAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := map[int]bool{}
		var log bytes.Buffer
		m := alert.NewMonitor(alert.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, alert.Rule{
			Name: "x", When: alert.Above(0), KeepFiring: time.Hour,
			Value: alert.Each(maps.All(members), func(bool) alert.Value { return alert.Gauge(func() float64 { return 1 }) }),
		})
		firing := func() float64 { return metricsOf(m)[instrument.AlertState.Name+"|x||firing"] }
		early := func() float64 { return metricsOf(m)[instrument.AlertEvaluations.Name+"|x||too_many_absent"] }
		reported := func() int { return len(m.Alerts()) }
		evaluate := func(from, to int) {
			clear(members)
			for i := from; i < to; i++ {
				members[i] = true
			}
			time.Sleep(s)
			m.Evaluate(time.Now())
		}
		evaluate(0, 1000)
		evaluate(1000, 1200)
		require.Equal(t, 1200.0, firing())
		require.Zero(t, early())
		require.Empty(t, log.String())
		for range 10 {
			evaluate(0, 0)
			require.Equal(t, 1000.0, firing())
			require.Equal(t, 1.0, early(), "only the first evaluation resolves alerts early")
		}
		require.Equal(t, 1, strings.Count(log.String(), "error=too_many_absent limit=1000"), log.String())

		time.Sleep(time.Hour)
		evaluate(0, 1000)
		evaluate(1000, 2000)
		time.Sleep(time.Hour)
		evaluate(0, 0)
		require.Equal(t, 2000, reported(), "an alert is reported when it resolves")
		require.Equal(t, 1000.0, firing())
		evaluate(0, 0)
		require.Equal(t, 1000, reported())
		require.Equal(t, 1000.0, firing())
		require.Equal(t, 1.0, early())
	})
}

// Members that are left out take no memory.
func TestTooLargeGroupTakesLittleMemory(t *testing.T) {
	keys := make([]string, 200_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	m := alert.NewMonitor(alert.Config{Logger: discardLogger(), Budget: time.Minute}, alert.Rule{
		Name: "x", When: alert.Above(1), Value: alert.Each(func(yield func(string, int) bool) {
			for i, key := range keys {
				if !yield(key, i) {
					return
				}
			}
		}, func(int) alert.Value { return alert.Gauge(func() float64 { return 0 }) }),
	})
	m.Evaluate(time.Now())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m.Evaluate(time.Now())
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
	require.Equal(t, 2.0, metricsOf(m)[instrument.AlertEvaluations.Name+"|x||too_many_members"])
}
