package alert_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

func TestBurnRateWithoutCallsIsNotAnError(t *testing.T) {
	m := alert.NewMonitor(alert.Config{Logger: discardLogger()},
		alert.Rule{Name: "burn", Value: alert.BurnRate(&totals{}, 0.99, time.Hour, 5*time.Minute), When: alert.Above(1)})
	m.Evaluate(time.Now())
	require.Equal(t, 1.0, evaluations(m, "burn", ""))
}

func TestValueMetricIsTheWorstMember(t *testing.T) {
	members := maps.All(map[string]float64{"a": 3, "b": 1, "c": 2})
	value := func(v float64) alert.Value { return alert.Gauge(func() float64 { return v }) }
	for want, when := range map[float64]alert.Condition{1: alert.Below(5), 3: alert.Above(0)} {
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{Name: "each", Value: alert.Each(members, value), When: when})
		m.Evaluate(time.Now())
		require.Equal(t, want, metricsOf(m)[instrument.AlertValue.Name+"|each|"], "%v", when)
	}
}

func TestUnknownFailureIsOther(t *testing.T) {
	for kind, want := range map[string]string{"": "_OTHER", "made up": "_OTHER", "panic": "panic", "http_5xx": "http_5xx"} {
		refusing := alert.Func("x", func(context.Context, alert.Alert) error { return &alert.DeliveryError{Kind: kind, Permanent: true} })
		m := alert.NewMonitor(alert.Config{Logger: discardLogger(), Notify: []alert.Notifier{refusing}},
			alert.Rule{Name: "each", When: alert.Above(0), Value: alert.Bool(func() bool { return true })})
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		require.Equal(t, 1.0, metricsOf(m)["weir.notifier.notifications|x|failed|"+want], "%q", kind)
		require.EqualError(t, &alert.DeliveryError{Kind: kind}, "alert: not delivered: "+want)
	}
}
