package alert_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/stat"
)

func TestOnlyWhatHasFiredAndEndedIsResolved(t *testing.T) {
	now := time.Now()
	for want, alerts := range map[bool][]alert.Alert{
		true:  {{EndsAt: now}},
		false: {{}, {State: alert.Pending}, {State: alert.Firing}, {State: alert.Firing, EndsAt: now}},
	} {
		for _, a := range alerts {
			require.Equal(t, want, a.Resolved(), "%v, %v", a.State, a.EndsAt)
		}
	}
}

func TestBurnWithoutCallsIsNoFault(t *testing.T) {
	m := alert.NewMonitor(alert.Config{Logger: quiet()},
		alert.Rule{Name: "burn", Value: alert.BurnRate(&totals{}, 0.99, time.Hour, 5*time.Minute), When: alert.Above(1)})
	m.Evaluate()
	require.Equal(t, 1.0, evaluations(m, "burn", ""))
}

func TestTheWorstMemberIsShown(t *testing.T) {
	members := maps.All(map[string]float64{"a": 3, "b": 1, "c": 2})
	value := func(v float64) alert.Value { return alert.Gauge(func() float64 { return v }) }
	for want, when := range map[float64]alert.Condition{1: alert.Below(5), 3: alert.Above(0)} {
		m := alert.NewMonitor(alert.Config{Logger: quiet()}, alert.Rule{Name: "each", Value: alert.Each(members, value), When: when})
		m.Evaluate()
		require.Equal(t, want, figures(m)[stat.AlertValue.Name+"|each|"], "%v", when)
	}
}

func TestAnUnknownFailureIsAnother(t *testing.T) {
	for _, f := range []alert.Failure{alert.Other, alert.Panicked + 1, 255} {
		require.Equal(t, "_OTHER", f.String(), "%d", uint8(f))
	}
}
