package alert_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/testenv"
)

// errRefused is a refusal that may be temporary.
var errRefused = &alert.DeliveryError{Kind: "http_4xx", Refused: true}

func refuseDelivery(alert.Alert) error { return errRefused }

func TestRefusedAlertIsRetriedAfterMinutes(t *testing.T) {
	for _, test := range []struct{ repeat, want time.Duration }{{0, 5 * time.Minute}, {4 * time.Hour, 5 * time.Minute}, {time.Minute, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			f := &repeatingNotifier{flakyNotifier: newFlakyNotifier(refuseDelivery), every: test.repeat}
			st := newSwitchedRules(t, f)
			st.setRule(0, true)
			time.Sleep(test.want - 10*s)
			require.EqualValues(t, 1, f.attempts.Load())
			time.Sleep(20 * s)
			require.EqualValues(t, 2, f.attempts.Load())
			require.Equal(t, 2.0, st.notifications("flaky", "failed", "http_4xx"))
			require.Equal(t, 2.0, st.notifications("flaky", "refused", ""), "each refusal is counted")
			require.Equal(t, 1.0, metricsOf(st)[instrument.NotifierPending.Name+"|flaky"], "the alert is still pending")
			require.Zero(t, st.notifications("flaky", "dropped", ""))

			f.answer.Store(acceptDelivery)
			time.Sleep(test.want)
			require.Contains(t, f.lines(), "r0 firing")
			require.Zero(t, metricsOf(st)[instrument.NotifierPending.Name+"|flaky"])
			st.stop()
		})
	}
}

func TestNewStateOfARefusedAlertIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(refuseDelivery)
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		f.answer.Store(acceptDelivery)
		st.setRule(0, false)
		require.Equal(t, []string{"r0 resolved"}, f.lines())
		require.Equal(t, 1.0, st.notifications("flaky", "superseded", ""))
		st.stop()
	})
}

func TestRefusedAlertsDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused []time.Time
		f := newFlakyNotifier(func(a alert.Alert) error {
			if a.Key != "good" {
				refused = append(refused, time.Now())
				return errRefused
			}
			return nil
		})
		keys := map[string]int{}
		for i := range 100 {
			keys[fmt.Sprint(i)] = i
		}
		m := alert.NewMonitor(alert.Config{Interval: 10 * s, Notify: []alert.Notifier{f}, Logger: discardLogger()}, alwaysFiring(keys))
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(time.Hour)
		cancel()
		synctest.Wait()
		require.Greater(t, len(refused), 500, "all are tried every few minutes")
		require.Less(t, len(refused), 1400, "not more often")
		for i := 101; i < len(refused); i++ {
			require.GreaterOrEqual(t, refused[i].Sub(refused[i-1]), s, "not all at once, attempt %d", i)
		}

		keys["good"] = 1
		m.Evaluate(time.Now())
		began := time.Now()
		ending, done := context.WithTimeout(t.Context(), 10*time.Minute)
		defer done()
		_ = m.Flush(ending)
		require.Equal(t, []string{"x firing"}, f.lines())
		require.Less(t, time.Since(began), 3*time.Minute)
	})
}

func TestFlushRetriesRefusedAlertsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(refuseDelivery)
		m, bad := newManualMonitor(f, 2)
		bad[0], bad[1] = true, true
		m.Evaluate(time.Now())
		err := m.Flush(t.Context())
		require.EqualError(t, err, `alert: notifier "flaky" refused 2 alerts`)
		require.ErrorContains(t, m.Flush(t.Context()), "refused 2 alerts")
		require.EqualValues(t, 4, f.attempts.Load())
		f.answer.Store(acceptDelivery)
		require.NoError(t, m.Flush(t.Context()))
		require.Equal(t, []string{"r0 firing", "r1 firing"}, f.lines())
	})
}

func TestRefusalIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := newFlakyNotifier(refuseDelivery)
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{f}, Logger: plainLogger(&log)}, alwaysFiring(map[string]int{"a": 1}))
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(time.Hour)
		f.answer.Store(acceptDelivery)
		time.Sleep(6 * time.Minute)
		cancel()
		synctest.Wait()
		require.Equal(t, `level=ERROR msg="alert: receiver refused an alert, will retry" weir.notifier.name=flaky weir.alert.rule=x weir.group.key=a `+
			`error="alert: not delivered: http_4xx" after=5m0s`+"\n"+
			`level=INFO msg="alert: delivery recovered" weir.notifier.name=flaky`+"\n", log.String())
	})
}

// The receiver accepts firing alerts and always refuses resolved ones.
func TestRefusedResolutionIsDroppedAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(func(a alert.Alert) error {
			if a.State == alert.Resolved {
				return errRefused
			}
			return nil
		})
		var bad atomic.Bool
		bad.Store(true)
		m := alert.NewMonitor(alert.Config{Interval: time.Minute, Notify: []alert.Notifier{f}, Logger: discardLogger()},
			alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Bool(bad.Load)})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(5 * time.Minute)
		bad.Store(false)
		time.Sleep(23 * time.Hour)
		require.Equal(t, 1.0, metricsOf(m)[instrument.NotifierPending.Name+"|flaky"])
		time.Sleep(2 * time.Hour)
		require.Zero(t, metricsOf(m)[instrument.NotifierPending.Name+"|flaky"])
		require.Zero(t, metricsOf(m)[instrument.NotifierPendingLimit.Name+"|flaky"], "the alert was dropped")
		require.Equal(t, 1.0, flakyMetric(m, instrument.NotifierNotifications, "dropped", ""))
		cancel()
		synctest.Wait()
	})
}

// failingBatch is a batch notifier that fails if a bad alert is in the batch.
type failingBatch struct {
	batchRecorder
	err error
}

func (b *failingBatch) NotifyAll(ctx context.Context, alerts []alert.Alert) error {
	for _, a := range alerts {
		if a.Key == "77" {
			b.sizes = append(b.sizes, len(alerts))
			return b.err
		}
	}
	return b.batchRecorder.NotifyAll(ctx, alerts)
}

func TestBadAlertOfABatchIsSentAlone(t *testing.T) {
	for name, err := range map[string]error{
		"refused":   errRefused,
		"permanent": &alert.DeliveryError{Kind: "http_4xx", Permanent: true},
		"5xx":       &alert.DeliveryError{Kind: "http_5xx"},
		"timeout":   &alert.DeliveryError{Kind: "timeout"},
		"any":       errors.New("broken"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &failingBatch{batchRecorder{flakyNotifier: newFlakyNotifier(acceptDelivery)}, err}
				keys := map[string]int{}
				for i := range 150 {
					keys[fmt.Sprint(i)] = i
				}
				m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{b}, Logger: discardLogger()}, alwaysFiring(keys))
				m.Evaluate(time.Now())
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				_ = m.Flush(ctx)
				require.Len(t, b.lines(), 149)
				require.Contains(t, b.sizes, 1)

				delete(keys, "77")
				b.sizes, b.err = nil, nil
				m.Evaluate(time.Now())
				require.NoError(t, m.Flush(t.Context()))
				for i := range 150 {
					keys[fmt.Sprint("more ", i)] = i
				}
				b.sizes = nil
				m.Evaluate(time.Now())
				require.NoError(t, m.Flush(t.Context()))
				require.Equal(t, []int{64, 64, 22}, b.sizes, "other alerts are sent in batches")
			})
		})
	}
}

// If a receiver is unreachable, the alerts of a failed batch are not the cause.
func TestUnreachableReceiverKeepsBatchesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &failingBatch{batchRecorder{flakyNotifier: newFlakyNotifier(acceptDelivery)}, &alert.DeliveryError{Kind: "unreachable"}}
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{b}, Logger: discardLogger()}, alwaysFiring(map[string]int{"77": 1, "78": 2}))
		m.Evaluate(time.Now())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorContains(t, m.Flush(ctx), "undelivered alerts: ")
		require.NotContains(t, b.sizes, 1)
	})
}

// With a search through all alerts at each step, 20,000 alerts took 40 seconds.
func TestDeliveryTimePerAlertIsConstant(t *testing.T) {
	keys := map[string]int{}
	for i := range 1000 {
		keys[fmt.Sprint(i)] = i
	}
	var rules []alert.Rule
	for i := range 20 {
		r := alwaysFiring(keys)
		r.Name = fmt.Sprint("r", i)
		rules = append(rules, r)
	}
	f := newFlakyNotifier(acceptDelivery)
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{f}, Budget: time.Minute}, rules...)
	m.Evaluate(time.Now())
	began := testenv.Running()
	require.NoError(t, m.Flush(t.Context()))
	require.Len(t, f.lines(), 20_000)
	require.Less(t, testenv.Running()-began, 20*time.Second)
}
