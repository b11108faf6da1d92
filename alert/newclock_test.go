package alert_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/window"
)

// A monitor is a package variable that is used with the real clock and then in two bubbles, each
// with a clock that begins in the year 2000. In each bubble Rule.For and Rule.KeepFiring begin
// again, and an alert that fires goes on.
func TestAMonitorStartsAgainWithEachClock(t *testing.T) {
	bad := map[string]bool{}
	rule := func(name string) alert.Rule {
		return alert.Rule{
			Name: name, When: alert.Above(0), Value: alert.Bool(func() bool { return bad[name] }),
			For: time.Minute, KeepFiring: time.Minute,
		}
	}
	told := &repeatingNotifier{flakyNotifier: newFlakyNotifier(acceptDelivery), every: time.Hour}
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told}}, rule("pending"), rule("clearing"), rule("firing"))
	states := func(t *testing.T) map[string]alert.State {
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		seen := map[string]alert.State{}
		for _, a := range m.Alerts() {
			seen[a.Rule] = a.State
			require.LessOrEqual(t, a.ActiveAt, time.Now())
		}
		return seen
	}
	bad["firing"], bad["pending"] = true, true
	states(t)
	for bubble := range 2 {
		synctest.Test(t, func(t *testing.T) {
			bad["clearing"] = bubble == 0
			first := states(t)
			require.Equal(t, alert.Pending, first["pending"])
			time.Sleep(59 * time.Second)
			require.Equal(t, first, states(t), "the times begin with the clock")
			time.Sleep(time.Second)
			want := map[string]alert.State{"pending": alert.Firing, "firing": alert.Firing, "clearing": alert.Firing}
			if bubble > 0 {
				want["clearing"] = alert.Resolved
			}
			require.Equal(t, want, states(t))
			repeated := func() (n int) {
				for _, line := range told.lines() {
					if strings.HasPrefix(line, "firing firing") {
						n++
					}
				}
				return n
			}
			before := repeated()
			require.Positive(t, before, told.lines())
			time.Sleep(time.Hour)
			states(t)
			require.Equal(t, before+1, repeated(), "after an hour")
			bad["pending"] = false
			states(t)
			time.Sleep(time.Hour)
			bad["pending"], bad["clearing"] = false, false
			states(t)
			time.Sleep(time.Minute)
			states(t)
			bad["pending"] = true
			states(t)
		})
	}
}

// Values count the calls of their spans in each clock.
func TestValuesStartAgainWithEachClock(t *testing.T) {
	calls := window.NewCalls(window.CallsConfig{Latency: true})
	values := map[string]alert.Value{
		"rate": alert.FailureRate(calls, time.Minute), "quantile": alert.Quantile(calls, 0.5, time.Minute),
		"burn": alert.BurnRate(calls, 0.5, 2*time.Minute, time.Minute),
	}
	thresholds := map[string]float64{"rate": 0.5, "quantile": 1, "burn": 1.2}
	var rules []alert.Rule
	for name, v := range values {
		rules = append(rules, alert.Rule{Name: name, Value: v, When: alert.Above(thresholds[name]), NoData: alert.Resolve})
	}
	m := alert.NewMonitor(alert.Config{Interval: time.Second, Logger: discardLogger()}, rules...)
	inBubble := func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); synctest.Wait() }()
		go func() { _ = m.Run(ctx) }()
		for _, o := range []window.Outcome{window.Success, window.Failure, window.Success, window.Failure} {
			for range 300 {
				calls.Record(o, time.Duration(1+3*o)*900*time.Millisecond)
				time.Sleep(time.Second)
			}
			firing := 0
			for _, a := range m.Alerts() {
				if a.State == alert.Firing {
					firing++
				}
			}
			require.Equal(t, len(rules)*int(o), firing)
		}
	}
	m.Evaluate(time.Now())
	calls.Record(window.Failure, 0)
	m.Evaluate(time.Now())
	synctest.Test(t, inBubble)
	synctest.Test(t, inBubble)
}

// A stale time is no other clock: the evaluation uses the latest time.
func TestAStaleEvaluationIsNoNewClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		m := alert.NewMonitor(alert.Config{}, alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 }), For: time.Hour})
		ahead := time.Now().Add(365 * 24 * time.Hour)
		began := func() time.Time { return m.Alerts()[0].ActiveAt }
		m.Evaluate(ahead)
		for _, stale := range []time.Duration{time.Second, 2 * time.Hour, 100 * 24 * time.Hour, 730 * 24 * time.Hour} {
			m.Evaluate(ahead.Add(-stale))
			require.Equal(t, ahead, began())
		}
		m.Evaluate(time.Now())
		require.Equal(t, time.Now(), began(), "a year back, to the time of the clock")
		time.Sleep(time.Hour)
		m.Evaluate(time.Now())
		require.Equal(t, alert.Firing, m.Alerts()[0].State)
	})
}

// A monitor gets its notifier in one bubble, and calls it in the next and outside.
func TestANotifierThatWasAddedInABubble(t *testing.T) {
	m := alert.NewMonitor(alert.Config{Logger: discardLogger()})
	told := newFlakyNotifier(acceptDelivery)
	use := func(t *testing.T) {
		rule := alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Bool(func() bool { return true })}
		require.NoError(t, m.Reconfigure(alert.Config{Logger: discardLogger(), Notify: []alert.Notifier{told}}, rule))
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		require.NoError(t, m.Test(t.Context(), told.Name()))
	}
	synctest.Test(t, use)
	synctest.Test(t, use)
	use(t)
}
