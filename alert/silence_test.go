package alert_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// silencedMonitor is a running monitor of one rule that a test turns on and off, with a receiver
// that may be down.
type silencedMonitor struct {
	*alert.Monitor
	t         *testing.T
	told      alertRecorder
	bad, down atomic.Bool
	attempts  atomic.Int64
}

func newSilencedMonitor(t *testing.T) *silencedMonitor {
	w := &silencedMonitor{t: t}
	receiver := alert.Func("pager", func(_ context.Context, a alert.Alert) error {
		w.attempts.Add(1)
		if w.down.Load() {
			return errors.New("down")
		}
		w.told.write(a)
		return nil
	})
	w.Monitor = alert.NewMonitor(alert.Config{Interval: time.Second, Notify: []alert.Notifier{receiver}, Logger: discardLogger()},
		alert.Rule{Name: "x", Value: alert.Bool(w.bad.Load), When: alert.Above(0), Severity: "page"})
	ctx, cancel := context.WithCancel(t.Context())
	go w.Run(ctx)
	t.Cleanup(func() { cancel(); synctest.Wait() })
	return w
}

func (w *silencedMonitor) silence(d time.Duration) {
	w.t.Helper()
	require.NoError(w.t, w.Silence(alert.Silence{Name: "s", Match: []string{`alertname="x"`}, EndsAt: time.Now().Add(d)}))
}

// evaluateAfter waits for two evaluations, and returns the delivered alerts.
func (w *silencedMonitor) evaluateAfter(bad bool) []string {
	w.bad.Store(bad)
	time.Sleep(2 * time.Second)
	synctest.Wait()
	return w.told.lines()
}

func TestSilencedAlertIsSentAfterwardsIfItStillFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilencedMonitor(t)
		w.silence(time.Minute)
		require.Empty(t, w.evaluateAfter(true))
		require.Equal(t, "s", w.Alerts()[0].SilencedBy)
		shown := metricsOf(w)
		require.Equal(t, 1.0, shown["weir.notifier.notifications|pager|silenced|"])
		require.Zero(t, shown["weir.notifier.pending|pager"])
		require.NoError(t, w.Flush(t.Context()), "nothing is left to deliver")
		time.Sleep(55 * time.Second)
		require.Empty(t, w.told.lines())
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"x firing"}, w.told.lines())
		require.Empty(t, w.Alerts()[0].SilencedBy)
		require.Equal(t, []string{"x firing", "x resolved"}, w.evaluateAfter(false))
		shown = metricsOf(w)
		for _, outcome := range []string{"failed|timeout", "superseded|", "refused|", "dropped|"} {
			require.Zero(t, shown["weir.notifier.notifications|pager|"+outcome], outcome)
		}
		require.Equal(t, 2.0, shown["weir.notifier.notifications|pager|delivered|"])
	})
}

func TestSilencedAlertThatResolvesIsNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilencedMonitor(t)
		w.silence(time.Minute)
		w.evaluateAfter(true)
		require.Empty(t, w.evaluateAfter(false))
		require.Empty(t, w.evaluateAfter(true), "fires again")
		w.evaluateAfter(false)
		time.Sleep(20 * time.Minute)
		require.Empty(t, w.told.lines())
		require.Equal(t, []string{"x firing"}, w.evaluateAfter(true), "the silence has ended")
	})
}

func TestResolveOfAKnownAlertIsSentDuringASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilencedMonitor(t)
		require.Equal(t, []string{"x firing"}, w.evaluateAfter(true))
		w.silence(time.Hour)
		require.Equal(t, []string{"x firing", "x resolved"}, w.evaluateAfter(false))
		require.Len(t, w.evaluateAfter(true), 2)
		require.Len(t, w.evaluateAfter(false), 2, "the receiver was not told that it fired again")
		w.evaluateAfter(true)
		require.True(t, w.EndSilence("s"))
		require.Equal(t, []string{"x firing", "x resolved", "x firing"}, w.evaluateAfter(true))
	})
}

func TestSilenceHoldsBackUndeliveredAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilencedMonitor(t)
		w.down.Store(true)
		w.evaluateAfter(true)
		w.silence(time.Hour)
		time.Sleep(5 * time.Second)
		before := w.attempts.Load()
		require.Positive(t, before)
		w.down.Store(false)
		time.Sleep(10 * time.Minute)
		require.Equal(t, before, w.attempts.Load(), "no attempt during the silence")
		w.EndSilence("s")
		require.Equal(t, []string{"x firing"}, w.evaluateAfter(true))
	})
}

func TestRefusedAlertIsNotTriedAgainDuringASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		m := alert.NewMonitor(alert.Config{Interval: time.Second, Logger: discardLogger(), Notify: []alert.Notifier{
			alert.Func("x", func(context.Context, alert.Alert) error {
				attempts.Add(1)
				return &alert.DeliveryError{Refused: true}
			}),
		}}, alert.Rule{Name: "x", Value: alert.Bool(func() bool { return true }), When: alert.Above(0)})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, attempts.Load())
		require.NoError(t, m.Silence(alert.Silence{Name: "s", Match: []string{"alertname=x"}, EndsAt: time.Now().Add(time.Hour)}))
		time.Sleep(59 * time.Minute)
		require.EqualValues(t, 1, attempts.Load())
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 2, attempts.Load(), "the silence has ended")
		cancel()
		synctest.Wait()
	})
}

// ownSilences is a notifier whose receiver silences alerts itself.
type ownSilences struct{ alert.Notifier }

func (ownSilences) OwnSilences() bool { return true }

func (ownSilences) Repeat() time.Duration { return time.Minute }

func TestSilenceDoesNotApplyToReceiversWithTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told alertRecorder
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{ownSilences{told.notifier("x")}}}, annotatedRule(nil))
		require.NoError(t, m.Silence(alert.Silence{Name: "s", Match: []string{"alertname=x"}, EndsAt: time.Now().Add(time.Hour)}))
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		time.Sleep(time.Minute)
		m.Evaluate(time.Now())
		require.NoError(t, m.Flush(t.Context()))
		require.Equal(t, []string{"x firing", "x firing"}, told.lines(), "repeats go on too")
		require.Equal(t, "s", m.Alerts()[0].SilencedBy)
	})
}

func TestSilencesAreReplacedAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alert.NewMonitor(alert.Config{}, annotatedRule(nil))
		names := func() (names []string) {
			for _, s := range m.Silences() {
				names = append(names, fmt.Sprint(s.Name, time.Until(s.EndsAt), s.Match))
			}
			return names
		}
		match := []string{"a=b"}
		for _, s := range []alert.Silence{{Name: "b", EndsAt: time.Now().Add(time.Hour)}, {Name: "a", EndsAt: time.Now().Add(time.Minute)}, {Name: "b", EndsAt: time.Now().Add(2 * time.Hour)}} {
			s.Match = match
			require.NoError(t, m.Silence(s))
		}
		match[0] = "changed"
		require.Equal(t, []string{"a1m0s [a=b]", "b2h0m0s [a=b]"}, names())
		m.Silences()[0].Match[0] = "changed"
		time.Sleep(time.Minute)
		require.Equal(t, []string{"b1h59m0s [a=b]"}, names())
		require.False(t, m.EndSilence("a"))
		require.True(t, m.EndSilence("b"))
		require.Empty(t, m.Silences())
	})
}

func TestSilenceBeginsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alert.NewMonitor(alert.Config{}, annotatedRule(nil))
		start := time.Now()
		require.NoError(t, m.Silence(alert.Silence{Name: "s", Match: []string{"alertname=x"}, StartsAt: start.Add(time.Minute), EndsAt: start.Add(time.Hour)}))
		for at, want := range map[time.Duration]string{0: "", time.Minute - 1: "", time.Minute: "s", time.Hour - 1: "s", time.Hour: ""} {
			at := start.Add(at)
			m := alert.NewMonitor(alert.Config{}, annotatedRule(nil))
			require.NoError(t, m.Silence(alert.Silence{Name: "s", Match: []string{"alertname=x"}, StartsAt: start.Add(time.Minute), EndsAt: start.Add(time.Hour)}))
			m.Evaluate(at)
			require.Equal(t, want, m.Alerts()[0].SilencedBy, at)
		}
	})
}

func TestInvalidSilences(t *testing.T) {
	m := alert.NewMonitor(alert.Config{})
	now := time.Now()
	for want, s := range map[string]alert.Silence{
		`Name must be UTF-8 and take 1 to 200 bytes`: {Match: []string{"a=b"}, EndsAt: now.Add(time.Hour)},
		`must be in the future and after StartsAt`:   {Name: "x", Match: []string{"a=b"}},
		`EndsAt is `: {Name: "x", Match: []string{"a=b"}, StartsAt: now.Add(time.Hour), EndsAt: now.Add(time.Minute)},
		`Match has 0 conditions, must have 1 to 32`:                    {Name: "x", EndsAt: now.Add(time.Hour)},
		`Match has 33 conditions, must have 1 to 32`:                   {Name: "x", Match: make([]string, 33), EndsAt: now.Add(time.Hour)},
		`Match holds for an alert without labels`:                      {Name: "x", Match: []string{`a=~".*"`, "b!=c"}, EndsAt: now.Add(time.Hour)},
		`Match has "a": must be a label, one of = != =~ !~, and a val`: {Name: "x", Match: []string{"a"}, EndsAt: now.Add(time.Hour)},
		`the regular expression is invalid`:                            {Name: "x", Match: []string{`a=~"("`}, EndsAt: now.Add(time.Hour)},
	} {
		require.ErrorContains(t, m.Silence(s), want)
		require.Empty(t, m.Silences())
	}
	for i := range 200 {
		require.NoError(t, m.Silence(alert.Silence{Name: fmt.Sprint(i), Match: []string{"a=b"}, EndsAt: now.Add(time.Hour)}))
	}
	one := alert.Silence{Name: "one more", Match: []string{"a=b"}, EndsAt: now.Add(time.Hour)}
	require.ErrorContains(t, m.Silence(one), "the monitor has 200 silences, which is the most")
	one.Name = "0"
	require.NoError(t, m.Silence(one), "it replaces one")
}

func TestSilencesAreSafeForConcurrentUse(t *testing.T) {
	m := alert.NewMonitor(alert.Config{}, annotatedRule(nil))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				name := fmt.Sprint(i)
				_ = m.Silence(alert.Silence{Name: name, Match: []string{"alertname=x"}, EndsAt: time.Now().Add(time.Hour)})
				if len(m.Silences()) == 0 || !m.EndSilence(name) {
					t.Error("the silence is not there")
				}
			}
		})
	}
	for range 200 {
		m.Evaluate(time.Now())
	}
	all.Wait()
	require.Empty(t, m.Silences())
}
