package alert_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

// twoRules is a monitor of two rules: one that a test sets, and one that is bad or hangs.
type twoRules struct {
	*alert.Monitor
	bad, hangs bool
	release    chan struct{}
}

func newTwoRules(notify alert.Notifier) *twoRules {
	two := &twoRules{release: make(chan struct{})}
	two.Monitor = alert.NewMonitor(alert.Config{Notify: []alert.Notifier{notify}, Logger: discardLogger()},
		alert.Rule{Name: "first", When: alert.Above(0), Value: alert.Bool(func() bool { return two.bad })},
		alert.Rule{Name: "second", When: alert.Above(0), Value: alert.Bool(func() bool {
			if two.hangs {
				<-two.release
			}
			return two.bad
		})})
	return two
}

// cancelInSecondRule runs the monitor until the second rule hangs, and then cancels Run.
func (two *twoRules) cancelInSecondRule(ctx context.Context) {
	two.hangs = true
	ctx, cancel := context.WithTimeout(ctx, s/2)
	defer cancel()
	two.Run(ctx)
	close(two.release)
	synctest.Wait()
	two.hangs = false
}

func TestCanceledEvaluationChangesNoAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlakyNotifier(failDelivery)
		two := newTwoRules(f)
		two.bad = true
		two.Evaluate(time.Now())
		before := two.Alerts()
		require.Len(t, before, 2)
		two.cancelInSecondRule(t.Context())
		require.Equal(t, before, two.Alerts())
		f.answer.Store(acceptDelivery)
		require.NoError(t, two.Flush(t.Context()))
		require.ElementsMatch(t, []string{"first firing", "second firing"}, f.lines())
	})
}

// The alert fires in a canceled evaluation and is resolved in the next.
func TestUndeliveredAlertThatResolvedIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &repeatingNotifier{flakyNotifier: newFlakyNotifier(acceptDelivery), every: time.Minute}
		two := newTwoRules(r)
		two.bad = true
		two.cancelInSecondRule(t.Context())
		two.bad = false
		for range 3 {
			two.Evaluate(time.Now())
			require.Equal(t, alert.Resolved, two.Alerts()[0].State)
			require.NoError(t, two.Flush(t.Context()))
			require.Zero(t, flakyMetric(two.Monitor, instrument.NotifierPendingLimit))
			time.Sleep(time.Minute)
		}
		require.Empty(t, r.lines())
	})
}

func TestRunCanceledWhileWaitingDoesNotEvaluate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		m := alert.NewMonitor(alert.Config{Interval: 1000 * time.Hour}, alert.Rule{
			Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { reads++; return 0 }),
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		m.Run(ctx)
		synctest.Wait()
		require.Equal(t, 1, reads)
	})
}

// An attempt that succeeds after Run was canceled counts. An attempt that fails then does
// not.
func TestRunWaitsForTheAttemptInProgress(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		want   int64
	}{"success": {nil, 1}, "failure": {errFlaky, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := alert.Func("flaky", func(ctx context.Context, _ alert.Alert) error {
					<-ctx.Done()
					time.Sleep(50 * time.Millisecond)
					return test.answer
				})
				m, bad := newManualMonitor(f, 1)
				bad[0] = true
				ctx, cancel := context.WithTimeout(t.Context(), s)
				defer cancel()
				began := time.Now()
				m.Run(ctx)
				require.Equal(t, 1050*time.Millisecond, time.Since(began))
				require.EqualValues(t, test.want, flakyMetric(m, instrument.NotifierAttempts))
				require.EqualValues(t, test.want, flakyMetric(m, instrument.NotifierNotifications, "delivered", ""))
				for series, h := range m.Histograms {
					if series.Instrument == instrument.NotifierDeliveryDuration {
						require.Equal(t, test.want, h.Count(), "attempts with a duration")
					}
				}
			})
		})
	}
}

// The logger is the only user code on the goroutine of Run.
func TestPanicOfRunLeavesNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := plainLogger(lineWriter(func(string) { panic("full") }))
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{newFlakyNotifier(acceptDelivery)}, Logger: full},
			alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return math.Inf(1) })})
		require.PanicsWithValue(t, "full", func() { m.Run(t.Context()) })
		synctest.Wait()
		require.NotPanics(t, func() { m.Evaluate(time.Now()) }, "Run has returned")
	})
}
