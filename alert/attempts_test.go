package alert_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// plainLogger returns a logger that writes neither times nor stacks.
func plainLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stack" {
			return slog.Attr{}
		}
		return a
	}}))
}

// flakyMetric returns a metric of the notifier "flaky".
func flakyMetric(m *alert.Monitor, i *stat.Instrument, attributes ...string) float64 {
	return metricsOf(m)[strings.Join(append([]string{i.Name, "flaky"}, attributes...), "|")]
}

func TestFirstFailureAndRecoveryOfANotifierAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		bad := false
		f := newFlakyNotifier(acceptDelivery)
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{f}, Logger: plainLogger(&log)},
			alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Bool(func() bool { return bad })})
		deliver := func(answers ...error) {
			f.answer.Store(func(alert.Alert) error {
				answer := answers[0]
				answers = answers[1:]
				return answer
			})
			bad = !bad
			m.Evaluate(time.Now())
			require.NoError(t, m.Flush(t.Context()))
			require.Empty(t, answers)
		}
		never := &alert.DeliveryError{Kind: "http_4xx", Permanent: true}
		const (
			fails   = `level=WARN msg="alert: delivery failed, will retry" weir.notifier.name=flaky weir.alert.rule=x error="alert: not delivered: not now"` + "\n"
			again   = `level=INFO msg="alert: delivery recovered" weir.notifier.name=flaky` + "\n"
			refused = `level=ERROR msg="alert: receiver refused an alert" weir.notifier.name=flaky weir.alert.rule=x error="alert: not delivered: http_4xx"` + "\n"
		)
		for _, step := range []struct {
			answers []error
			want    string
		}{
			{[]error{nil}, ""},
			{[]error{errFlaky, errFlaky, errFlaky, nil}, fails + again},
			{[]error{nil}, ""},
			{[]error{never}, refused},
			{[]error{never}, refused},
			{[]error{errFlaky, nil}, again},
			{[]error{nil}, ""},
		} {
			log.Reset()
			deliver(step.answers...)
			require.Equal(t, step.want, log.String())
		}
	})
}

func TestFirstFailureAndRecoveryOfARuleAreLogged(t *testing.T) {
	var log strings.Builder
	var read func() float64
	m := alert.NewMonitor(alert.Config{Logger: plainLogger(&log)},
		alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return read() })})
	fine, infinite := func() float64 { return 1 }, func() float64 { return math.Inf(1) }
	breaks, exits := func() float64 { panic("broken") }, func() float64 { runtime.Goexit(); return 0 }
	const works = `level=INFO msg="alert: rule recovered" weir.alert.rule=x` + "\n"
	for _, step := range []struct {
		read func() float64
		want string
	}{
		{fine, ""},
		{breaks, `level=ERROR msg="alert: rule panicked" weir.alert.rule=x panic=broken` + "\n"},
		{breaks, ""},
		{fine, works},
		{infinite, `level=ERROR msg="alert: rule failed" weir.alert.rule=x error=not_finite` + "\n"},
		{infinite, ""},
		{exits, `level=ERROR msg="alert: rule failed" weir.alert.rule=x error=goexit` + "\n"},
		{fine, works},
		{fine, ""},
	} {
		log.Reset()
		read = step.read
		m.Evaluate(time.Now())
		require.Equal(t, step.want, log.String())
	}
}

func TestTimestampsAreInSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, bad := newManualMonitor(newFlakyNotifier(acceptDelivery), 1)
		bad[0] = true
		m.Evaluate(time.UnixMilli(1_500_000_001_500))
		require.Equal(t, 1_500_000_001.5, metricsOf(m)[instrument.AlertLastEvaluation.Name+"|r0|"])
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, m.Flush(t.Context()))
		require.Equal(t, 946_684_801.5, flakyMetric(m, instrument.NotifierLastSuccess), "a synctest bubble begins at 2000-01-01 00:00 UTC")
	})
}

func TestPendingIsCountedBeforeTheFirstAttempt(t *testing.T) {
	m, bad := newManualMonitor(newFlakyNotifier(acceptDelivery), 2)
	start := time.Now()
	for _, step := range []struct {
		at             time.Duration
		bad            [2]bool
		pending, limit float64
	}{
		{0, [2]bool{true, false}, 1, 1},
		{1 * s, [2]bool{true, true}, 1, 2},
		{2 * s, [2]bool{true, true}, 0, 2},
		{3 * s, [2]bool{true, false}, 1, 2},
		{time.Hour, [2]bool{true, false}, 0, 1}, // the resolved alert is forgotten
	} {
		copy(bad, step.bad[:])
		m.Evaluate(start.Add(step.at))
		require.Equal(t, step.pending, flakyMetric(m, instrument.NotifierPending), "at %v", step.at)
		require.Equal(t, step.limit, flakyMetric(m, instrument.NotifierPendingLimit), "at %v", step.at)
		require.NoError(t, m.Flush(t.Context()))
	}
}

func TestSuccessResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		f := newFlakyNotifier(func(alert.Alert) error {
			at = append(at, time.Now())
			if len(at) < 10 || len(at)%2 == 1 {
				return errFlaky
			}
			return nil
		})
		m, bad := newManualMonitor(f, 20)
		for i := range bad {
			bad[i] = true
		}
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		require.Len(t, f.lines(), 20)
		for i := 10; i < len(at); i++ {
			require.Less(t, at[i].Sub(at[i-1]), s, "before attempt %d", i+1)
		}
	})
}

func TestPermanentErrorDelaysOthersOnlyByItsPause(t *testing.T) {
	for _, asked := range []time.Duration{0, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newFlakyNotifier(func(a alert.Alert) error {
				if a.Rule == "r0" {
					return &alert.DeliveryError{Permanent: true, Pause: asked}
				}
				return nil
			})
			m, bad := newManualMonitor(f, 2)
			bad[0], bad[1] = true, true
			m.Evaluate(time.Now())
			began := time.Now()
			require.NoError(t, m.Flush(t.Context()))
			require.Equal(t, []string{"r1 firing"}, f.lines())
			require.Equal(t, asked, time.Since(began))
		})
	}
}

func TestDeadlineExceededIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		f := alert.Func("flaky", func(ctx context.Context, _ alert.Alert) error {
			if calls++; calls > 1 {
				return nil
			}
			<-ctx.Done()
			return fmt.Errorf("dialing: %w", ctx.Err())
		})
		m, bad := newManualMonitor(f, 1)
		bad[0] = true
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		require.Equal(t, 1.0, flakyMetric(m, instrument.NotifierNotifications, "failed", "timeout"))
		require.Zero(t, flakyMetric(m, instrument.NotifierNotifications, "failed", "_OTHER"))
	})
}

func TestRepeatIsDueAfterExactlyRepeat(t *testing.T) {
	r := &repeatingNotifier{flakyNotifier: newFlakyNotifier(acceptDelivery), every: time.Minute}
	m, bad := newManualMonitor(r, 1)
	bad[0] = true
	start := time.Now()
	for _, step := range []struct {
		at   time.Duration
		want int
	}{{0, 1}, {time.Minute - 1, 1}, {time.Minute, 2}, {2*time.Minute - 1, 2}, {2 * time.Minute, 3}} {
		m.Evaluate(start.Add(step.at))
		require.NoError(t, m.Flush(t.Context()))
		require.Len(t, r.lines(), step.want, "at %v", step.at)
	}
}

func TestFailedStateIsSupersededByANewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *alert.Monitor
		var bad []bool
		f := newFlakyNotifier(func(alert.Alert) error {
			if !bad[0] {
				return nil
			}
			bad[0] = false
			m.Evaluate(time.Now())
			return errFlaky
		})
		m, bad = newManualMonitor(f, 1)
		bad[0] = true
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		require.Equal(t, []string{"r0 resolved"}, f.lines())
		require.Equal(t, 1.0, flakyMetric(m, instrument.NotifierNotifications, "superseded", ""))
	})
}

// A receiver that was told that an alert fires must be told that it resolved, however late.
func TestAlertRemovedDuringAnAttempt(t *testing.T) {
	for name, test := range map[string]struct {
		answer  error
		want    []string
		dropped float64
	}{
		"is taken back where the attempt succeeds": {nil, []string{"r0 firing", "r0 resolved"}, 0},
		"is dropped where it fails":                {errFlaky, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m *alert.Monitor
				var bad []bool
				start := time.Now()
				f := newFlakyNotifier(func(alert.Alert) error {
					if !bad[0] {
						return nil
					}
					bad[0] = false
					m.Evaluate(start.Add(s))
					m.Evaluate(start.Add(time.Hour))
					return test.answer
				})
				m, bad = newManualMonitor(f, 1)
				bad[0] = true
				m.Evaluate(start)
				require.NoError(t, m.Flush(t.Context()))
				require.Equal(t, test.want, f.lines())
				require.Equal(t, test.dropped, flakyMetric(m, instrument.NotifierNotifications, "dropped", ""))
				require.Zero(t, flakyMetric(m, instrument.NotifierPendingLimit), "the alert was removed")
			})
		})
	}
}
