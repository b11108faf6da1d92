package alert_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/window"
)

// A monitor in a package variable is made with the real clock. A test may use it in a synctest
// bubble, whose clock begins in 2000.
func TestMonitorMadeOutsideTheBubble(t *testing.T) {
	calls := window.NewCalls(window.CallsConfig{Latency: true})
	var told alertRecorder
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told.notifier("x")}, Logger: discardLogger()},
		alert.Rule{Name: "errors", Value: alert.FailureRate(calls, time.Minute), When: alert.Above(0.5)},
		alert.Rule{Name: "slow", Value: alert.Quantile(calls, 0.5, time.Minute), When: alert.Above(1), NoData: alert.Resolve})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		record := func(o window.Outcome, took time.Duration) {
			for range 600 {
				calls.Record(o, took)
				time.Sleep(time.Second)
			}
		}
		record(window.Success, time.Millisecond)
		require.Empty(t, told.lines())
		record(window.Failure, 3*time.Second)
		require.ElementsMatch(t, []string{"errors firing", "slow firing"}, told.lines())
		record(window.Success, time.Millisecond)
		require.ElementsMatch(t, []string{"errors firing", "slow firing", "errors resolved", "slow resolved"}, told.lines())
		cancel()
		synctest.Wait()
	})
}

func TestEvaluateAtZeroAndStaleTimes(t *testing.T) {
	bad := true
	var told alertRecorder
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told.notifier("x")}},
		alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Bool(func() bool { return bad })})
	at := func(t0 time.Time, want ...string) {
		t.Helper()
		told.told = nil
		m.Evaluate(t0)
		require.NoError(t, m.Flush(t.Context()))
		require.Equal(t, want, told.lines())
	}
	at(time.Time{}, "x firing")
	require.False(t, m.Alerts()[0].StartsAt.IsZero())
	bad = false
	at(time.Time{}, "x resolved")
	require.Equal(t, alert.Resolved, m.Alerts()[0].State)
	bad = true
	at(time.Now(), "x firing")
	at(time.Time{})
	require.Equal(t, alert.Firing, m.Alerts()[0].State)
	bad = false
	at(time.Time{}, "x resolved")
	require.WithinDuration(t, time.Now(), m.Alerts()[0].EndsAt, time.Minute, "a stale time counts as the latest one")
}
