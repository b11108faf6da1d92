package alert_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

func TestEachWatchesTheBreakersOfAGroup(t *testing.T) {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
	monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
		Name: "host fails", When: alert.Above(0.5), MinCalls: 5,
		Value: alert.Each(hosts.All(), func(b *breaker.Breaker) alert.Value { return alert.FailureRate(b, time.Minute) }),
	})
	a, b := hosts.Get("a.example"), hosts.Get("b.example")
	monitor.Evaluate(time.Now())
	for range 10 {
		require.NoError(t, a.Run(t.Context(), func(context.Context) error { return nil }))
		require.Error(t, b.Run(t.Context(), func(context.Context) error { return errors.New("down") }))
	}
	monitor.Evaluate(time.Now())
	alerts := monitor.Alerts()
	require.Len(t, alerts, 1)
	require.Equal(t, "b.example", alerts[0].Key)
}
