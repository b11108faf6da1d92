package browser_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
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
		alert.Rule{Name: "disk is full", Severity: "page", Value: alert.Bool(bad.Load), When: alert.Above(0)})
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

// No source is in trouble, and yet the users would not be told of trouble.
func TestRulesAndNotifiersThatDoNotWorkNeedAttention(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	var works atomic.Bool
	refuses := alert.Func("pager", func(context.Context, alert.Alert) error {
		if works.Load() {
			return nil
		}
		return &alert.DeliveryError{Permanent: true, Err: errors.New("the key is wrong")}
	})
	var broken, bad atomic.Bool
	broken.Store(true)
	bad.Store(true)
	runs := alert.NewMonitor(alert.Config{Interval: 50 * time.Millisecond, Notify: []alert.Notifier{refuses}, Logger: quiet},
		alert.Rule{Name: "disk is full", Value: alert.Gauge(func() float64 {
			if broken.Load() {
				panic("no disk")
			}
			return 0
		}), When: alert.Above(1)},
		alert.Rule{Name: "queue is long", Value: alert.Bool(bad.Load), When: alert.Above(0)},
		alert.Rule{Name: "without data", Value: alert.Gauge(math.NaN), When: alert.Above(0)})
	stopped := alert.NewMonitor(alert.Config{}, alert.Rule{Name: "disk fails", Value: alert.Gauge(func() float64 { return 0 }), When: alert.Above(0)})
	stopped.Evaluate(time.Now().Add(-time.Hour))
	runUntilEnd(t, runs)
	b, s := newTab(t), serve(t, quickConfig, runs, stopped, breaker.New("bank", breaker.Config{}))
	b.visit(s)
	b.waitUntil(titleScript + ` === "Needs attention: 1 rule firing, 2 rules not evaluated, 1 notifier failing"`)
	bad.Store(false)
	b.waitUntil(titleScript + ` === "Needs attention: 2 rules not evaluated, 1 notifier failing"`)
	says := b.text(".problems")
	for _, want := range []string{
		`disk fails[\s\S]*last evaluated .*1 h ago[\s\S]*the monitor does not run, or hangs`,
		`disk is full[\s\S]*Since\s+\S+.*, for \d+ s\s+Why\s+each evaluation fails: its code panics\s+Affected\s+this rule: the rule failed, keeping the last verdict`,
		`not delivering\s+pager[\s\S]*the key is wrong[\s\S]*none waits; the next change of an alert is sent; what was given up is not sent again`,
		`\d notifications? given up, the last \d+ s ago; nothing was ever delivered`,
	} {
		require.Regexp(t, want, says)
	}
	require.NotContains(t, says, "without data")
	require.NotContains(t, says, "tried again")
	require.Equal(t, "disk fails: stopped,disk is full: failing,queue is long: inactive,without data: inactive,pager: failing",
		eval[string](b, `[...document.querySelectorAll(".aside li:has(> .badge)")].map(l => l.querySelector("bdi").innerText + ": " + l.querySelector(".badge").innerText).sort((a, b) => a.startsWith("pager") - b.startsWith("pager") || (a < b ? -1 : 1)).join()`))
	b.requireAccessible("rules and notifiers that do not work")

	broken.Store(false)
	b.waitUntil(titleScript + ` === "Needs attention: 1 rule not evaluated, 1 notifier failing"`)
	works.Store(true)
	bad.Store(true)
	b.requireText(".aside", "1 delivered")
	require.Regexp(t, `gave up\s+pager[\s\S]*the key is wrong`, b.text(".problems"), "what was lost stays lost")
	require.Contains(t, b.text(".aside"), "gave up")
}

func TestAFullTableOfKeysNeedsAttention(t *testing.T) {
	logins := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(1e6), MaxKeys: 1, Name: "logins"})
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{MaxKeys: 1})
	logins.Get("a").Take(1e6)
	permit, err := hosts.Get("a").Allow(t.Context()) // a key with a call in flight keeps its room
	require.NoError(t, err)
	defer permit.Record(t.Context(), nil, breaker.Success)
	b, s := newTab(t), serve(t, quickConfig, logins, hosts)
	b.visit(s)
	b.waitUntil(titleScript + ` === "Nothing needs attention"`)
	repeatUntilEnd(t, func() {
		logins.Get("a").Take(1e6)
		logins.Get("b").Take(1)
		makeCalls(hosts.Get("b"), 1, 0, nil)
	})
	b.waitUntil(titleScript + `.startsWith("Needs attention: 2 sources")`)
	b.requireText(".problems", "as many keys as MaxKeys are in use; since then")
	require.Regexp(t, `full\s+hosts[\s\S]*since then \d+ calls? without a breaker`, b.text(".problems:not([hidden])"))
	require.Regexp(t, `full\s+logins[\s\S]*since then \d+ requests? without room`, b.text(".problems:not([hidden])"))
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
