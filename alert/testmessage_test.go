package alert_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func TestTestMessageFiresAndResolves(t *testing.T) {
	var told, other alertRecorder
	m := alert.NewMonitor(alert.Config{Instance: "web-1", Notify: []alert.Notifier{other.notifier("other"), told.notifier("pager")}})
	require.NoError(t, m.Silence(alert.Silence{Name: "all", Match: []string{`alertname=~".+"`}, EndsAt: time.Now().Add(time.Hour)}))
	require.NoError(t, m.Test(t.Context(), "pager"))
	require.Equal(t, []string{"weir test firing", "weir test resolved"}, told.lines())
	fires, resolves := told.alerts()[0], told.alerts()[1]
	require.Equal(t, map[string]string{"alertname": "weir test", "severity": "info", "instance": "web-1"}, fires.Labels)
	require.Equal(t, fires.ID, resolves.ID)
	require.Len(t, fires.ID, 16)
	require.False(t, fires.StartsAt.IsZero())
	require.True(t, fires.EndsAt.IsZero())
	require.False(t, resolves.EndsAt.IsZero())
	require.Empty(t, other.lines())
	require.Empty(t, m.Alerts())
	require.Zero(t, metricsOf(m)["weir.notifier.attempts|pager"])
	require.EqualError(t, m.Test(t.Context(), "none"), `alert: the monitor has no notifier "none"`)
}

func TestTestMessageReportsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		hang := make(chan struct{})
		m := alert.NewMonitor(alert.Config{Logger: discardLogger(), Notify: []alert.Notifier{
			alert.Func("down", func(context.Context, alert.Alert) error { calls++; return errors.New("no route") }),
			alert.Func("panics", func(context.Context, alert.Alert) error { panic("oops") }),
			alert.Func("hangs", func(context.Context, alert.Alert) error { <-hang; return nil }),
		}})
		require.EqualError(t, m.Test(t.Context(), "down"), `alert: test of notifier "down": firing message: alert: not delivered: no route`)
		require.Equal(t, 1, calls, "one attempt")
		require.ErrorContains(t, m.Test(t.Context(), "panics"), "panic: oops")
		began := time.Now()
		require.ErrorContains(t, m.Test(t.Context(), "hangs"), "no answer within 10s")
		require.Equal(t, 10*time.Second+100*time.Millisecond, time.Since(began))
		close(hang)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, m.Test(ctx, "down"), context.Canceled)
		synctest.Wait()
	})
}

// A notifier is called by one goroutine at a time, also while Run delivers.
func TestTestMessageWaitsForAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, most := 0, 0
		m := alert.NewMonitor(alert.Config{Interval: time.Second, Notify: []alert.Notifier{alert.Func("x", func(context.Context, alert.Alert) error {
			active++
			most = max(most, active)
			time.Sleep(3 * time.Second)
			active--
			return nil
		})}}, annotatedRule(nil))
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(time.Second)
		require.NoError(t, m.Test(t.Context(), "x"))
		require.Equal(t, 1, most)
		cancel()
		synctest.Wait()
	})
}
