package alert_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// restartedProgram is a program with one rule whose process is replaced.
type restartedProgram struct {
	t        *testing.T
	file     string
	bad      bool
	now      time.Time
	received alertRecorder
	log      bytes.Buffer
	monitor  *alert.Monitor
	fails    error
}

func newRestartedProgram(t *testing.T) *restartedProgram {
	return &restartedProgram{t: t, file: filepath.Join(t.TempDir(), "alerts"), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (r *restartedProgram) config() alert.Config {
	return alert.Config{
		StateFile: r.file, Instance: "a", Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		Notify: []alert.Notifier{alert.Func("book", func(_ context.Context, a alert.Alert) error {
			if r.fails == nil {
				r.received.write(a)
			}
			return r.fails
		})},
	}
}

func (r *restartedProgram) rule(wait time.Duration) alert.Rule {
	return alert.Rule{Name: "down", Value: alert.True(func() bool { return r.bad }), When: alert.Above(0), For: wait}
}

// start kills the process and starts a new one with the rules.
func (r *restartedProgram) start(rules ...alert.Rule) {
	if r.monitor != nil {
		r.monitor.Kill()
	}
	r.monitor = alert.NewMonitor(r.config(), rules...)
}

// evaluateAfter evaluates when d has passed, and delivers.
func (r *restartedProgram) evaluateAfter(d time.Duration) {
	r.now = r.now.Add(d)
	r.monitor.Evaluate(r.now)
	if r.fails == nil {
		require.NoError(r.t, r.monitor.Flush(r.t.Context()))
	}
}

func TestIncidentIsNotNotifiedAgainAfterARestart(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	began := r.monitor.Alerts()[0].StartsAt
	for range 3 {
		r.start(r.rule(0))
		r.evaluateAfter(time.Hour)
	}
	require.Equal(t, []string{"down firing"}, r.received.lines())
	require.True(t, began.Equal(r.monitor.Alerts()[0].StartsAt))
	r.bad = false
	r.evaluateAfter(time.Second)
	r.start(r.rule(0))
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())
}

func TestIncidentThatEndedWhileTheProcessWasDownResolves(t *testing.T) {
	for _, down := range []time.Duration{time.Second, 24 * time.Hour} {
		r := newRestartedProgram(t)
		r.bad = true
		r.start(r.rule(0))
		r.evaluateAfter(0)
		r.bad = false
		r.start(r.rule(0))
		r.evaluateAfter(down)
		require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())
	}
}

func TestAlertOfARuleRemovedBeforeTheRestartResolves(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	r.start()
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())
	require.Equal(t, r.received.alerts()[0].ID, r.received.alerts()[1].ID)
}

// The process is killed between the evaluation and the deliveries, so only the file has the
// notifications.
func TestUndeliveredNotificationsSurviveARestart(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.monitor.Evaluate(r.now)
	r.start(r.rule(0))
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, r.received.lines())
	r.bad = false
	r.monitor.Evaluate(r.now.Add(time.Second))
	r.start(r.rule(0))
	r.evaluateAfter(time.Hour) // the resolved alert is no longer reported
	require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())
}

// The receiver may have got a notification that was in flight.
func TestAlertInFlightAtTheRestartResolves(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.monitor.Evaluate(r.now)
	r.bad = false
	r.start(r.rule(0))
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down resolved"}, r.received.lines())
}

func TestTimeWithoutAProcessDoesNotCountForPendingAlerts(t *testing.T) {
	for down, want := range map[time.Duration]time.Duration{10 * time.Minute: 6 * time.Second, 2 * time.Hour: 10 * time.Second} {
		r := newRestartedProgram(t)
		r.bad = true
		r.start(r.rule(10 * time.Second))
		r.evaluateAfter(0)
		r.evaluateAfter(4 * time.Second)
		r.start(r.rule(10 * time.Second))
		r.evaluateAfter(down)
		r.evaluateAfter(want - time.Second)
		require.Empty(t, r.received.lines())
		r.evaluateAfter(time.Second)
		require.Equal(t, []string{"down firing"}, r.received.lines())
	}
}

func TestDamagedStateFileIsLeftAside(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	whole, err := os.ReadFile(r.file)
	require.NoError(t, err)
	flipped := bytes.Replace(whole, []byte("down"), []byte("dawn"), 1)
	for _, content := range [][]byte{whole[:len(whole)-1], whole[:10], {}, []byte("#!/bin/sh\n"), flipped, make([]byte, 17<<20)} {
		require.NoError(t, os.WriteFile(r.file, content, 0o600))
		r.log.Reset()
		r.start(r.rule(0))
		r.evaluateAfter(time.Second)
		require.Contains(t, r.log.String(), "damaged or foreign")
		aside, err := os.ReadFile(r.file + ".bad")
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, aside))
		require.Equal(t, alert.Firing, r.monitor.Alerts()[0].State)
	}
	info, err := os.Stat(r.file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}

func TestUnwritableStateFileLosesNoNotification(t *testing.T) {
	r := newRestartedProgram(t)
	dir := filepath.Dir(r.file)
	r.file = filepath.Join(dir, "missing", "alerts")
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, r.received.lines())
	require.Equal(t, 1, bytes.Count(r.log.Bytes(), []byte("cannot be used")), "logged once")
	require.NoError(t, os.Mkdir(filepath.Dir(r.file), 0o700))
	r.evaluateAfter(time.Second)
	require.Contains(t, r.log.String(), "in use again")
	r.start(r.rule(0))
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, r.received.lines())
}

func TestSecondProcessDoesNotUseAStateFile(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	first, file := r.monitor, r.file
	second := alert.NewMonitor(r.config())
	second.Evaluate(r.now)
	require.Contains(t, r.log.String(), "cannot be used")
	require.NoError(t, second.Flush(t.Context()))
	require.Len(t, r.received.lines(), 1, "it knows nothing of the file")
	first.Kill()
	second.Evaluate(r.now)
	require.NoError(t, second.Flush(t.Context()))
	require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines(), file)
}

func TestRefusedAlertIsNotSentAgainAfterARestart(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.fails = &alert.DeliveryError{Permanent: true, Err: errors.New("no")}
	r.start(r.rule(0))
	r.evaluateAfter(0)
	_ = r.monitor.Flush(t.Context())
	r.fails = nil
	r.start(r.rule(0))
	r.evaluateAfter(time.Second)
	require.Empty(t, r.received.lines())
}

func TestStateFileNeedsAnInstanceAndStays(t *testing.T) {
	require.ErrorContains(t, alert.Validate(alert.Config{StateFile: "x"}), "needs an Instance")
	m := alert.NewMonitor(alert.Config{})
	require.ErrorContains(t, m.Reconfigure(alert.Config{StateFile: "x", Instance: "a"}), "cannot become")
}

// The fuzzer makes only the JSON if sealed is true, and otherwise the whole file. Such a whole file
// hardly ever has the right checksum.
func FuzzStateFile(f *testing.F) {
	f.Add([]byte("weir-alert-state 1 x\n{}"), false)
	f.Add([]byte(`{"at":"2026-01-01T00:00:00Z","rules":{"r":{"threshold":1}},"alerts":[{"labels":{"alertname":"r"},`+
		`"phase":2,"value":2}],"notifiers":{"n":[{"id":"x","state":"firing","due":{"id":"x","state":"firing"}},`+
		`{"id":"y","state":"resolved","held":true}]}}`), true)
	f.Fuzz(func(t *testing.T, content []byte, sealed bool) {
		if sealed {
			content = append(fmt.Appendf(nil, "weir-alert-state 1 %x\n", sha256.Sum256(content)), content...)
		}
		again, err := alert.ReadStateFile(content)
		if err != nil {
			return
		}
		_, err = alert.ReadStateFile(again)
		require.NoError(t, err)
	})
}

func TestStateFileOfTheFuzzerIsWhole(t *testing.T) {
	text := `{"notifiers":{"n":[{"id":"x","state":"nonsense"}]}}`
	_, err := alert.ReadStateFile(fmt.Appendf(nil, "weir-alert-state 1 %x\n%s", sha256.Sum256([]byte(text)), text))
	require.ErrorContains(t, err, "alert of a notifier is not valid")
}
