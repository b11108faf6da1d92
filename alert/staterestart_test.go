package alert_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func (r *restartedProgram) silence() {
	r.t.Helper()
	require.NoError(r.t, r.monitor.Silence(alert.Silence{
		Name: "s", Match: []string{`alertname="down"`}, StartsAt: r.now.Add(-time.Hour),
		EndsAt: time.Now().Add(100 * 365 * 24 * time.Hour),
	}))
}

// The receiver may have got the notification that was in flight, so it must also get the resolved
// alert.
func TestSilenceAfterARestartKeepsTheResolve(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.monitor.Evaluate(r.now)
	r.start(r.rule(0))
	r.silence()
	r.evaluateAfter(time.Second)
	require.Empty(t, r.received.lines())
	r.bad = false
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down resolved"}, r.received.lines())
}

// The receiver is down until the monitor no longer reports the alert.
func TestRestoredAlertStaysUntilItsResolveIsDelivered(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.monitor.Evaluate(r.now)
	r.start(r.rule(0))
	r.bad, r.fails = false, errors.New("receiver is down")
	r.evaluateAfter(time.Second)
	r.evaluateAfter(time.Hour)
	require.Empty(t, r.monitor.Alerts())
	r.fails = nil
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down resolved"}, r.received.lines())
}

func TestSilencedAlertOverARestart(t *testing.T) {
	held := func() *restartedProgram {
		r := newRestartedProgram(t)
		r.bad = true
		r.start(r.rule(0))
		r.silence()
		r.evaluateAfter(0)
		r.start(r.rule(0))
		return r
	}
	r := held() // a restart ends the silence
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, r.received.lines())
	r = held()
	r.bad = false
	r.evaluateAfter(time.Second)
	require.Empty(t, r.received.lines(), "the receiver has heard of nothing that has ended")
	r = held()
	r.silence()
	r.evaluateAfter(time.Second)
	r.start(r.rule(0))
	r.bad = false
	r.evaluateAfter(time.Second)
	require.Empty(t, r.received.lines(), "a second restart")
}

// The receiver has heard that an alert resolved. The alert is silenced when it fires again.
func TestResolvedAlertThatFiresSilencedBeforeARestart(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	r.bad = false
	r.evaluateAfter(time.Second)
	r.silence()
	r.bad = true
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())
	r.start(r.rule(0))
	r.bad = false
	r.evaluateAfter(time.Second)
	require.Len(t, r.received.lines(), 2)
	r.bad = true
	r.evaluateAfter(time.Second)
	require.Equal(t, "down firing", r.received.lines()[2])
}

// The notification may have been in flight when the process was killed.
func TestEndOfASilenceBeforeARestartKeepsTheResolve(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.silence()
	r.evaluateAfter(0)
	r.evaluateAfter(time.Second)
	require.True(t, r.monitor.EndSilence("s"))
	r.monitor.Evaluate(r.now)
	r.start(r.rule(0))
	r.bad = false
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down resolved"}, r.received.lines())
}

func TestNotifierWithOwnSilencesOverARestart(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	start := func() {
		if r.monitor != nil {
			r.monitor.Kill()
		}
		c := r.config()
		c.Notify = []alert.Notifier{ownSilences{c.Notify[0]}}
		r.monitor = alert.NewMonitor(c, r.rule(0))
	}
	start()
	r.silence()
	r.monitor.Evaluate(r.now)
	start()
	r.bad = false
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down resolved"}, r.received.lines(), "a notification may have been in flight")
}

func TestMembersAlertsOverARestart(t *testing.T) {
	r := newRestartedProgram(t)
	members := map[string]int{"a": 1, "b": 2}
	rule := alert.Rule{Name: "x", When: alert.Above(0), For: time.Minute, Value: alert.Each(maps.All(members), func(int) alert.Value {
		return alert.Bool(func() bool { return true })
	})}
	r.start(rule)
	r.evaluateAfter(0)
	r.evaluateAfter(time.Minute)
	require.Len(t, r.received.alerts(), 2)
	before := r.monitor.Alerts()
	r.start(rule)
	r.evaluateAfter(time.Second)
	require.Len(t, r.received.alerts(), 2)
	for i, a := range r.monitor.Alerts() {
		require.Equal(t, alert.Firing, a.State, "it does not wait for a minute again")
		require.Equal(t, before[i].Key, a.Key)
		require.True(t, before[i].StartsAt.Equal(a.StartsAt))
	}
	delete(members, "b")
	r.start(rule)
	r.evaluateAfter(time.Second)
	all := r.received.alerts()
	require.Len(t, all, 3)
	require.Equal(t, alert.Resolved, all[2].State)
	require.Equal(t, "b", all[2].Key)
}

func TestEachNotifierContinuesFromItsOwnState(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	var second, third alertRecorder
	fails := errors.New("down")
	other := alert.Func("second", func(_ context.Context, a alert.Alert) error {
		if fails == nil {
			second.write(a)
		}
		return fails
	})
	start := func(more ...alert.Notifier) {
		if r.monitor != nil {
			r.monitor.Kill()
		}
		c := r.config()
		c.Notify = append(c.Notify, more...)
		r.monitor = alert.NewMonitor(c, r.rule(0))
	}
	start(other)
	r.monitor.Evaluate(r.now)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, r.monitor.Flush(ctx))
	fails = &alert.DeliveryError{Permanent: true, Err: errors.New("no")}
	require.NoError(t, r.monitor.Flush(t.Context()))
	require.Len(t, r.received.lines(), 1)
	fails = nil
	start(other, third.notifier("third"))
	r.evaluateAfter(time.Second)
	require.Len(t, r.received.lines(), 1)
	require.Empty(t, second.lines(), "it refused the alert")
	require.Equal(t, []string{"down firing"}, third.lines(), "it is new")
}

// The process is killed before another evaluation writes the file.
func TestNotifierAddedByReconfigureWritesTheFile(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	var added alertRecorder
	c := r.config()
	c.Notify = append(c.Notify, added.notifier("added"))
	require.NoError(t, r.monitor.Reconfigure(c, r.rule(0)))
	r.evaluateAfter(time.Second)
	r.monitor.Kill()
	r.monitor = alert.NewMonitor(c, r.rule(0))
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, added.lines())
	require.Equal(t, []string{"down firing"}, r.received.lines())
}

func TestStateFileThatCannotBeReplacedForATime(t *testing.T) {
	r := newRestartedProgram(t)
	r.start(r.rule(0))
	r.evaluateAfter(0)
	_ = os.Remove(r.file)
	require.NoError(t, os.MkdirAll(filepath.Join(r.file, "x"), 0o700))
	r.bad = true
	r.evaluateAfter(time.Second)
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, r.received.lines())
	require.Equal(t, 1, strings.Count(r.log.String(), "cannot be used"), "logged once")
	require.NoError(t, os.RemoveAll(r.file))
	r.evaluateAfter(time.Second)
	require.Contains(t, r.log.String(), "in use again")
	r.start(r.rule(0))
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, r.received.lines())
}

// The record of an alert that fires is damaged, while its notification is in flight or after it.
func TestAlertWhoseRecordIsLostDoesNotFireForEver(t *testing.T) {
	for _, delivered := range []bool{false, true} {
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			r := newRestartedProgram(t)
			r.bad = true
			r.start(r.rule(wait))
			for range 3 {
				r.monitor.Evaluate(r.now)
				r.now = r.now.Add(wait)
			}
			if delivered {
				require.NoError(t, r.monitor.Flush(t.Context()))
			}
			text, err := os.ReadFile(r.file)
			require.NoError(t, err)
			text = bytes.Replace(text, []byte(`"phase":2`), []byte(`"phase":3`), 1)
			require.NoError(t, os.WriteFile(r.file, text, 0o600))
			r.start(r.rule(wait))
			r.bad = false
			r.evaluateAfter(time.Second)
			r.evaluateAfter(time.Second)
			if delivered && wait == 0 { // there is no other record with the labels
				require.Equal(t, []string{"down firing"}, r.received.lines())
				continue
			}
			last := r.received.alerts()[len(r.received.alerts())-1]
			require.Equal(t, alert.Resolved, last.State, "delivered %v, For %v", delivered, wait)
			require.False(t, last.StartsAt.IsZero() || last.EndsAt.Before(last.StartsAt), "%+v", last)
			r.bad = true
			r.evaluateAfter(time.Second)
			r.evaluateAfter(wait)
			require.Equal(t, "down firing", r.received.lines()[len(r.received.lines())-1])
		}
	}
}

// An alert resolves and is pending again before its resolve is delivered. The power is lost during
// the write of the latter, so the file has the alert as pending, and as told that it fires.
func TestResolveIsNotLostWithTheEndOfTheFile(t *testing.T) {
	r := newRestartedProgram(t)
	rule := r.rule(10 * time.Second)
	r.bad = true
	r.start(rule)
	r.evaluateAfter(0)
	r.evaluateAfter(10 * time.Second)
	for _, r.bad = range []bool{false, true} {
		r.now = r.now.Add(time.Second)
		r.monitor.Evaluate(r.now)
	}
	text, err := os.ReadFile(r.file)
	require.NoError(t, err)
	end := bytes.LastIndex(text, []byte(`"phase":1`))
	require.Positive(t, end)
	end += bytes.IndexByte(text[end:], '\n') + 1
	require.Contains(t, string(text[end:]), `"state":"resolved"`)
	require.NoError(t, os.WriteFile(r.file, text[:end], 0o600))
	r.bad = false
	r.start(rule)
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())
}
