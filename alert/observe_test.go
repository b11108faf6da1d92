package alert_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// slowNotifier is a notifier that takes a second, and fails the first time.
type slowNotifier struct{ calls int }

func (*slowNotifier) Name() string { return "slowly" }

func (s *slowNotifier) Notify(context.Context, alert.Alert) error {
	time.Sleep(time.Second)
	if s.calls++; s.calls == 1 {
		return errors.New("not now")
	}
	return nil
}

func TestHistogramsOfAMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{&slowNotifier{}}},
			alert.Rule{Name: "idle", When: alert.Above(0), Value: alert.Bool(func() bool { return false })},
			alert.Rule{Name: "busy", Severity: "page", When: alert.Above(0), Value: alert.Bool(func() bool {
				time.Sleep(200 * time.Millisecond)
				return true
			})})
		m.Evaluate(time.Now())
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		seen := map[string]stat.Histogram{}
		for s, h := range m.Histograms {
			seen[fmt.Sprint(s.Instrument.Name, s.Values)] = h
		}
		for name, want := range map[string]struct {
			count   int64
			seconds float64
		}{
			"weir.alert.evaluation.duration[idle ]":     {2, 0},
			"weir.alert.evaluation.duration[busy page]": {2, 0.4},
			"weir.notifier.delivery.duration[slowly]":   {2, 2}, // two attempts; the first fails
		} {
			require.Contains(t, seen, name)
			h := seen[name]
			require.Equal(t, want.count, h.Count(), name)
			require.InDelta(t, want.seconds, h.Sum, 1e-6, name)
		}
		require.Len(t, seen, 3)
	})
}

// unknownKindNotifier is a notifier that fails with an unknown Kind.
type unknownKindNotifier struct{}

func (unknownKindNotifier) Name() string { return "strange" }

func (unknownKindNotifier) Notify(context.Context, alert.Alert) error {
	return &alert.DeliveryError{Kind: "made up", Permanent: true, Err: errors.New("strange")}
}

func TestFailureOfUnknownKindIsOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{unknownKindNotifier{}}, Logger: slog.New(slog.DiscardHandler)},
			alert.Rule{Name: "on", When: alert.Above(0), Value: alert.Bool(func() bool { return true })})
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		failed := map[string]float64{}
		for s, v := range m.Observe {
			if s.Instrument == instrument.NotifierNotifications && v > 0 {
				failed[s.Values[1]+" "+s.Values[2]] = v
			}
		}
		require.Equal(t, map[string]float64{"failed _OTHER": 1, "dropped ": 1}, failed)
	})
}
