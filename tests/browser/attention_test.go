package browser_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// No source is in trouble, and yet an alert fires and its notifier delivers nothing. Both began
// before the page was opened, and the page shows when.
func TestFiringAlertsAndFailingNotifiersStandFirst(t *testing.T) {
	var bad, down atomic.Bool
	bad.Store(true)
	down.Store(true)
	pager := alert.Func("pager", func(context.Context, alert.Alert) error {
		if down.Load() {
			return errors.New("no route to the pager")
		}
		return nil
	})
	m := alert.NewMonitor(alert.Config{Interval: 50 * time.Millisecond, Notify: []alert.Notifier{pager}, Logger: slog.New(slog.DiscardHandler)},
		alert.Rule{Name: "disk is full", Severity: "page", Value: alert.True(bad.Load), When: alert.Above(0)})
	began := time.Now().Add(-time.Hour)
	m.Evaluate(began)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	_ = m.Flush(ctx)
	cancel()
	b, s := newTab(t), serve(t, quickConfig, m, breaker.New("bank", breaker.Config{}))
	b.visit(s)
	b.requireText("h2", "Needs attention: 1 rule firing, 1 notifier failing")
	first := b.text(".problems")
	require.Contains(t, first, "disk is full")
	require.Regexp(t, `Since\s+\S+.*, for (1 h|60 min)`, first)
	require.Contains(t, first, "not delivering")
	require.Contains(t, first, "no route to the pager")
	require.Contains(t, first, "1 notification not delivered; nothing was ever delivered")
	require.NotContains(t, b.text(".main"), "Nothing needs attention")

	down.Store(false)
	runUntilEnd(t, m)
	b.waitUntil(`document.querySelector("h2").innerText === "Needs attention: 1 rule firing"`)
	bad.Store(false)
	b.waitUntil(`document.querySelector("h2").innerText === "Nothing needs attention"`)
}

func runUntilEnd(t *testing.T, m *alert.Monitor) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
