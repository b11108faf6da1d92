package alert_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

// switchedRules is a running monitor of rules that a test turns on and off.
type switchedRules struct {
	*alert.Monitor
	bad    [3]atomic.Bool
	cancel context.CancelFunc
}

func newSwitchedRules(t *testing.T, notify ...alert.Notifier) *switchedRules {
	st := &switchedRules{}
	var rules []alert.Rule
	for i := range st.bad {
		rules = append(rules, alert.Rule{Name: fmt.Sprint("r", i), Value: alert.Bool(st.bad[i].Load), When: alert.Above(0)})
	}
	st.Monitor = alert.NewMonitor(alert.Config{Interval: s, Notify: notify, Logger: discardLogger()}, rules...)
	ctx, cancel := context.WithCancel(t.Context())
	st.cancel = cancel
	go st.Run(ctx)
	return st
}

// setRule turns a rule on or off and waits for two evaluations.
func (st *switchedRules) setRule(rule int, bad bool) {
	st.bad[rule].Store(bad)
	time.Sleep(2 * s)
}

func (st *switchedRules) stop() {
	st.cancel()
	synctest.Wait()
}

// notifications returns how many notifications of the notifier had the outcome.
func (st *switchedRules) notifications(name, outcome, kind string) float64 {
	return metricsOf(st)[instrument.NotifierNotifications.Name+"|"+name+"|"+outcome+"|"+kind]
}

// flakyNotifier is a notifier whose results a test sets.
type flakyNotifier struct {
	alertRecorder
	answer   atomic.Value // of a func(alert.Alert) error
	attempts atomic.Int64
}

func newFlakyNotifier(answer func(alert.Alert) error) *flakyNotifier {
	f := &flakyNotifier{}
	f.answer.Store(answer)
	return f
}

func (f *flakyNotifier) Name() string { return "flaky" }

func (f *flakyNotifier) Notify(_ context.Context, a alert.Alert) error {
	f.attempts.Add(1)
	if err := f.answer.Load().(func(alert.Alert) error)(a); err != nil {
		return err
	}
	f.write(a)
	return nil
}

var errFlaky = errors.New("not now")

func failDelivery(alert.Alert) error { return errFlaky }

func acceptDelivery(alert.Alert) error { return nil }

func TestEachStateIsDeliveredOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(acceptDelivery)
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		st.setRule(1, true)
		st.setRule(0, false)
		st.setRule(0, true)
		time.Sleep(time.Hour)
		st.setRule(1, false)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"r0 firing", "r1 firing", "r0 resolved", "r0 firing", "r1 resolved"}, f.lines())
		require.Equal(t, 5.0, st.notifications("flaky", "delivered", ""))
		require.Equal(t, 5.0, metricsOf(st)[instrument.NotifierAttempts.Name+"|flaky"])
		require.NotZero(t, metricsOf(st)[instrument.NotifierLastSuccess.Name+"|flaky"])
		st.stop()
	})
}

func TestFailedDeliveryIsRepeatedUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(failDelivery)
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		time.Sleep(time.Hour)
		require.Empty(t, f.lines())
		require.InDelta(t, 3600/15, f.attempts.Load(), 60, "pauses of at most 30s, on average 15s")
		require.Equal(t, 1.0, metricsOf(st)[instrument.NotifierPending.Name+"|flaky"])
		require.Equal(t, float64(f.attempts.Load()), st.notifications("flaky", "failed", "_OTHER"))
		f.answer.Store(acceptDelivery)
		time.Sleep(30 * s)
		require.Equal(t, []string{"r0 firing"}, f.lines())
		require.Zero(t, metricsOf(st)[instrument.NotifierPending.Name+"|flaky"])
		st.stop()
	})
}

func TestNewerStateReplacesAnUndeliveredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(acceptDelivery)
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		f.answer.Store(failDelivery)
		for range 10 {
			st.setRule(0, false)
			st.setRule(0, true)
			st.setRule(1, true)
			st.setRule(1, false)
		}
		st.setRule(0, false)
		f.answer.Store(acceptDelivery)
		time.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"r0 firing", "r0 resolved", "r1 resolved"}, f.lines())
		require.Greater(t, st.notifications("flaky", "superseded", ""), 30.0)
		st.stop()
	})
}

func TestHangingNotifierDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var entered atomic.Int64
		hanging := alert.Func("hanging", func(context.Context, alert.Alert) error { entered.Add(1); <-release; return nil })
		var told alertRecorder
		st := newSwitchedRules(t, hanging, told.notifier("fine"))
		st.setRule(0, true)
		st.setRule(1, true)
		require.Equal(t, []string{"r0 firing", "r1 firing"}, told.lines())
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, entered.Load(), "one goroutine hangs, not one per attempt")
		require.Greater(t, st.notifications("hanging", "failed", "timeout"), 100.0)
		close(release)
		time.Sleep(time.Minute)
		require.Equal(t, 2.0, st.notifications("hanging", "delivered", ""))
		st.stop()
	})
}

func TestRunReturnsWhileANotifierHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		st := newSwitchedRules(t, alert.Func("hanging", func(context.Context, alert.Alert) error { <-release; return nil }))
		st.setRule(0, true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*s)
		defer cancel()
		began := time.Now()
		st.cancel()
		err := st.Flush(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, `alert: notifier "hanging" has 1 undelivered alerts: context deadline exceeded`)
		require.LessOrEqual(t, time.Since(began), 5200*time.Millisecond)
		require.NotPanics(t, func() { st.Evaluate(time.Now()) }, "Run has returned")
		close(release)
		synctest.Wait()
	})
}

func TestPanickingNotifierIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(func(alert.Alert) error { panic("broken") })
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		require.NotZero(t, st.notifications("flaky", "failed", "panic"))
		f.answer.Store(acceptDelivery)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"r0 firing"}, f.lines())
		st.stop()
	})
}

func TestPermanentErrorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(func(a alert.Alert) error {
			if a.Rule == "r0" {
				return fmt.Errorf("wrapped: %w", &alert.DeliveryError{Kind: "http_4xx", Permanent: true})
			}
			return nil
		})
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		st.setRule(1, true)
		time.Sleep(time.Hour)
		require.EqualValues(t, 2, f.attempts.Load())
		require.Equal(t, []string{"r1 firing"}, f.lines())
		require.Equal(t, 1.0, st.notifications("flaky", "failed", "http_4xx"))
		require.Equal(t, 1.0, st.notifications("flaky", "dropped", ""))
		st.stop()
	})
}

func TestOneBadAlertDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(func(a alert.Alert) error {
			if a.Rule == "r0" {
				return errFlaky
			}
			return nil
		})
		st := newSwitchedRules(t, f)
		st.setRule(0, true)
		st.setRule(1, true)
		st.setRule(2, true)
		time.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"r1 firing", "r2 firing"}, f.lines())
		st.stop()
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		waits time.Duration
	}{
		"a pause":       {&alert.DeliveryError{Kind: "http_4xx", Pause: 10 * time.Minute}, 10 * time.Minute},
		"a long pause":  {&alert.DeliveryError{Kind: "http_4xx", Pause: 100 * time.Hour}, time.Hour},
		"another error": {fmt.Errorf("wrapped: %w", retryAfterError(10*time.Minute)), 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			f := newFlakyNotifier(func(alert.Alert) error {
				at = append(at, time.Now())
				if len(at) > 1 {
					return nil
				}
				return c.err
			})
			st := newSwitchedRules(t, f)
			st.setRule(0, true)
			time.Sleep(2 * time.Hour)
			require.Len(t, at, 2, name)
			require.Equal(t, c.waits, at[1].Sub(at[0]), name)
			st.stop()
		})
	}
}

func TestAttemptInProgressIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alert.NewMonitor(alert.Config{Logger: discardLogger(), Notify: []alert.Notifier{alert.Func("n", func(ctx context.Context, _ alert.Alert) error {
			<-ctx.Done()
			return ctx.Err()
		})}}, alert.Rule{Name: "r", When: alert.Above(0), Value: alert.Bool(func() bool { return true })})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = m.Run(ctx) }()
		for range 120 {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, 1.0, metricsOf(m)[instrument.NotifierPending.Name+"|n"])
		}
	})
}
