package alert_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

var errDown = errors.New("down")

// call makes ten calls per second through the breaker for the given duration.
func call(ctx context.Context, b *breaker.Breaker, d time.Duration, err error) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_ = b.Run(ctx, func(context.Context) error { return err })
	}
}

// During an outage the breaker refuses nearly every call. If the rule counted only the calls that
// the breaker allows, the outage would seem to end when the breaker opens.
func TestOpenBreakerDoesNotSilenceItsAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := breaker.New("payments", breaker.Config{Cooldown: 5 * time.Second})
		var told alertRecorder
		monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told.notifier("recorder")}},
			alert.Rule{
				Name: "payments errors", Value: alert.FailureRate(payments, 5*time.Minute),
				When: alert.Above(0.05), MinCalls: 20, For: 30 * time.Second,
			},
			alert.Rule{Name: "payments open", Value: alert.Bool(payments.Tripped), When: alert.Above(0), For: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		go monitor.Run(ctx)

		call(ctx, payments, 10*time.Minute, nil)
		require.Empty(t, told.lines(), "healthy")

		call(ctx, payments, 10*time.Minute, errDown)
		require.Equal(t, []string{"payments errors firing"}, told.lines(), "after an outage of ten minutes")
		refused := payments.Totals().Refused
		require.Greater(t, refused, payments.Totals().Failures*10, "the breaker refused nearly all calls")

		call(ctx, payments, 20*time.Minute, nil)
		require.Equal(t, []string{"payments errors firing", "payments errors resolved"}, told.lines(), "recovered")

		fired, resolved := told.alerts()[0], told.alerts()[1]
		require.Equal(t, fired.ID, resolved.ID)
		require.Equal(t, fired.StartsAt, resolved.StartsAt)
		require.InDelta(t, 15*time.Minute, resolved.EndsAt.Sub(fired.StartsAt), float64(time.Minute), "the outage and the span after it")
		cancel()
		synctest.Wait()
	})
}

// Without calls there is no data, and a pending alert keeps aging.
func TestPendingAlertKeepsAgingWithoutCalls(t *testing.T) {
	payments := &totals{}
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "errors", Value: alert.FailureRate(payments, time.Minute), When: alert.Above(0.5), For: 3 * time.Minute,
	})
	start := time.Now()
	monitor.Evaluate(start)
	payments.Failures = 10
	for _, step := range []struct {
		at   time.Duration
		want alert.State
	}{
		{time.Second, alert.Pending},
		{2 * time.Minute, alert.Pending},
		{3 * time.Minute, alert.Pending},
		{3*time.Minute + time.Second, alert.Firing},
		{10 * time.Hour, alert.Firing},
	} {
		monitor.Evaluate(start.Add(step.at))
		require.Equal(t, step.want, monitor.Alerts()[0].State, "at %v", step.at)
	}
}
