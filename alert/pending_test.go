package alert_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

// While a receiver is down for hours and members come, fire and go, the queue holds no more than
// the alerts of the monitor.
func TestQueueOfAnUnreachableReceiverHoldsOnlyLiveAlerts(t *testing.T) {
	var day atomic.Int64
	members := func(yield func(string, int) bool) {
		for i := range 10 {
			if !yield(fmt.Sprint(day.Load(), "-", i), int(day.Load())*10+i) {
				return
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(failDelivery)
		m := alert.NewMonitor(alert.Config{Interval: 30 * s, Notify: []alert.Notifier{f}, Logger: discardLogger()}, alert.Rule{
			Name: "x", When: alert.Above(0),
			Value: alert.Each(members, func(int) alert.Value { return alert.Gauge(func() float64 { return 1 }) }),
		})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		for range 50 {
			day.Add(1)
			time.Sleep(10 * time.Minute)
			require.LessOrEqual(t, metricsOf(m)[instrument.NotifierPending.Name+"|flaky"], 30.0, "firing, or resolved in the last 15 minutes")
		}
		require.Greater(t, metricsOf(m)[instrument.NotifierNotifications.Name+"|flaky|dropped|"], 400.0)
		f.answer.Store(acceptDelivery)
		time.Sleep(5 * time.Minute)
		require.NotEmpty(t, f.lines())
		require.Zero(t, metricsOf(m)[instrument.NotifierPending.Name+"|flaky"])
		cancel()
		synctest.Wait()
	})
}

// A receiver that was told that an alert fires is told that it resolved, however long it was down.
func TestResolvedAlertIsKeptWhileItsReceiverIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(acceptDelivery)
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		f.answer.Store(failDelivery)
		st.setRule(0, false)
		time.Sleep(3 * time.Hour)
		require.Empty(t, st.Alerts())
		f.answer.Store(acceptDelivery)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"r0 firing", "r0 resolved"}, f.lines())
		st.stop()
	})
}

// A firing alert whose delivery timed out may have arrived.
func TestAlertThatMayHaveArrivedIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(func(alert.Alert) error { return &alert.DeliveryError{Kind: "timeout"} })
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		f.answer.Store(failDelivery)
		st.setRule(0, false)
		time.Sleep(time.Hour)
		f.answer.Store(acceptDelivery)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"r0 resolved"}, f.lines())
		st.stop()
	})
}
