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

func TestFlushAfterRunDeliversPendingAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(failDelivery)
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		time.Sleep(10 * time.Minute)
		require.Empty(t, f.lines())
		time.AfterFunc(20*s, func() { f.answer.Store(acceptDelivery) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		st.cancel()
		require.NoError(t, st.Flush(ctx))
		require.Equal(t, []string{"r0 firing"}, f.lines())
		st.bad[0].Store(false)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"r0 firing"}, f.lines(), "no evaluation after Run has ended")
	})
}

func TestFlushWithoutRun(t *testing.T) {
	var told alertRecorder
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told.notifier("x")}},
		alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Bool(func() bool { return true })})
	require.NoError(t, m.Flush(t.Context()))
	m.Evaluate(time.Now())
	require.Empty(t, told.lines(), "Evaluate delivers nothing")
	require.NoError(t, m.Flush(t.Context()))
	require.Equal(t, []string{"x firing"}, told.lines())
}

// newManualMonitor returns a monitor with rules r0, r1 and so on. The rule rN holds while bad[N] is
// true.
func newManualMonitor(notify alert.Notifier, rules int) (m *alert.Monitor, bad []bool) {
	bad = make([]bool, rules)
	var all []alert.Rule
	for i := range rules {
		all = append(all, alert.Rule{Name: fmt.Sprint("r", i), Value: alert.Bool(func() bool { return bad[i] }), When: alert.Above(0)})
	}
	return alert.NewMonitor(alert.Config{Notify: []alert.Notifier{notify}, Logger: discardLogger()}, all...), bad
}

func TestOldestAlertIsDeliveredFirst(t *testing.T) {
	f := newFlakyNotifier(acceptDelivery)
	m, bad := newManualMonitor(f, 5)
	for _, rule := range []int{3, 0, 4, 1, 2} {
		bad[rule] = true
		m.Evaluate(time.Now())
	}
	require.NoError(t, m.Flush(t.Context()))
	require.Equal(t, []string{"r3 firing", "r0 firing", "r4 firing", "r1 firing", "r2 firing"}, f.lines())
}

func TestFlushIgnoresThePauseOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		f := newFlakyNotifier(func(alert.Alert) error {
			if !free.Load() {
				return &alert.DeliveryError{Pause: 30 * time.Minute}
			}
			return nil
		})
		m, bad := newManualMonitor(f, 1)
		bad[0] = true
		ctx, stop := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(time.Minute)
		free.Store(true)
		began := time.Now()
		require.NoError(t, m.Flush(t.Context()))
		require.Zero(t, time.Since(began))
		require.Equal(t, []string{"r0 firing"}, f.lines())
		time.Sleep(time.Hour)
		require.Equal(t, []string{"r0 firing"}, f.lines(), "once")
		stop()
		synctest.Wait()
	})
}

func TestPermanentErrorDoesNotEndFlush(t *testing.T) {
	f := newFlakyNotifier(func(a alert.Alert) error {
		if a.Rule == "r0" {
			return &alert.DeliveryError{Permanent: true}
		}
		return nil
	})
	m, bad := newManualMonitor(f, 2)
	bad[0], bad[1] = true, true
	m.Evaluate(time.Now())
	require.NoError(t, m.Flush(t.Context()))
	require.Equal(t, []string{"r1 firing"}, f.lines())
}

// An attempt may fail because the program ends, which says nothing about the notifier.
func TestCanceledAttemptIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := alert.Func("slow", func(ctx context.Context, _ alert.Alert) error { <-ctx.Done(); return ctx.Err() })
		st := newSwitchedRules(t, slow)
		st.setRule(0, true)
		st.stop()
		require.Zero(t, metricsOf(st)[instrument.NotifierAttempts.Name+"|slow"])
		require.Zero(t, st.notifications("slow", "failed", "_OTHER"))
		require.Equal(t, 1.0, metricsOf(st)[instrument.NotifierPending.Name+"|slow"], "the alert is still pending")
	})
}
