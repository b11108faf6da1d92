package alert_test

import (
	"context"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func TestAttemptsHaveTenSecondsByDefault(t *testing.T) {
	for configured, want := range map[time.Duration]time.Duration{0: 10 * s, 3 * s: 3 * s} {
		synctest.Test(t, func(t *testing.T) {
			var left []time.Duration
			f := alert.Func("f", func(ctx context.Context, _ alert.Alert) error {
				deadline, _ := ctx.Deadline()
				left = append(left, time.Until(deadline))
				return nil
			})
			m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{f}, Logger: discardLogger(), Timeout: configured},
				alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 })})
			m.Evaluate(time.Now())
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			require.NoError(t, m.Flush(ctx))
			require.Equal(t, []time.Duration{want}, left)
		})
	}
}

func TestMembersHaveNoSeriesOfTheirOwn(t *testing.T) {
	series := func(members int) (n int) {
		hosts := map[string]*totals{}
		for i := range members {
			hosts[strconv.Itoa(i)] = &totals{}
		}
		m := alert.NewMonitor(alert.Config{Logger: discardLogger(), Notify: []alert.Notifier{alert.Log(discardLogger())}}, alert.Rule{
			Name: "calls", When: alert.Above(0),
			Value: alert.Each(maps.All(hosts), func(c *totals) alert.Value { return alert.Rate(c, time.Minute) }),
		})
		m.Evaluate(time.Now())
		for _, c := range hosts {
			c.Successes = 1
		}
		m.Evaluate(time.Now())
		require.Len(t, m.Alerts(), members)
		for range m.Observe {
			n++
		}
		return n
	}
	require.Equal(t, series(1), series(500))
}

func TestRulesAreEvaluatedEveryFiveSecondsByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 {
			at = append(at, time.Since(began))
			return 0
		})})
		ctx, cancel := context.WithTimeout(t.Context(), 11*s)
		defer cancel()
		_ = m.Run(ctx)
		require.GreaterOrEqual(t, len(at), 3)
		require.LessOrEqual(t, at[1], 5*s, "the second evaluation is at a random time")
		require.Equal(t, 5*s, at[2]-at[1])
	})
}
