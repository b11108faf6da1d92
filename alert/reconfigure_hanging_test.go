package alert_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func TestReplacedNotifiersThatHangAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var entered, hanging atomic.Int64
		config := func() alert.Config {
			return alert.Config{Notify: []alert.Notifier{alert.Func("pager", func(context.Context, alert.Alert) error {
				entered.Add(1)
				hanging.Add(1)
				<-release
				hanging.Add(-1)
				return nil
			})}}
		}
		rule := alert.Rule{Name: "down", Value: alert.Bool(func() bool { return true }), When: alert.Above(0)}
		m := alert.NewMonitor(config(), rule)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = m.Run(ctx) }()
		for range 10 {
			time.Sleep(5 * time.Minute)
			require.NoError(t, m.Reconfigure(config(), rule))
		}
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, 4, hanging.Load())

		var told alertRecorder
		c := alert.Config{Notify: []alert.Notifier{told.notifier("pager")}}
		require.NoError(t, m.Reconfigure(c, rule))
		time.Sleep(5 * time.Minute)
		require.Empty(t, told.lines())
		release <- struct{}{} // one call returns, so another notifier may be called
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"down firing"}, told.lines())
		close(release)
		require.EqualValues(t, 4, entered.Load())
	})
}
