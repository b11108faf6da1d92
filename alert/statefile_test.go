package alert_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/journal"
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
	return alert.Rule{Name: "down", Value: alert.Bool(func() bool { return r.bad }), When: alert.Above(0), For: wait}
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
	flipped := bytes.ReplaceAll(whole[1:], []byte("down"), []byte("dawn"))
	flipped = bytes.ReplaceAll(flipped, []byte("book"), []byte("look"))
	flipped = bytes.ReplaceAll(flipped, []byte("true"), []byte("false"))
	for _, content := range [][]byte{whole[:10], {}, []byte("#!/bin/sh\n"), flipped, make([]byte, 33<<20)} {
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
	require.ErrorContains(t, alert.Config{StateFile: "x"}.Validate(), "needs an Instance")
	m := alert.NewMonitor(alert.Config{})
	require.ErrorContains(t, m.Reconfigure(alert.Config{StateFile: "x", Instance: "a"}), "cannot become")
}

// Each record but the first has one bit flipped in turn, and the file ends in each of them in turn.
// The incident is neither announced again nor lost, unless a lost record was about it.
func TestDamagedRecordsOfAStateFileAreSkipped(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	two := func() []alert.Rule {
		up := alert.Rule{Name: "up", Value: alert.Bool(func() bool { return true }), When: alert.Above(0)}
		return []alert.Rule{r.rule(0), up}
	}
	r.start(two()...)
	r.evaluateAfter(0)
	whole, err := os.ReadFile(r.file)
	require.NoError(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	require.Greater(t, len(lines), 6)
	check := func(damaged []byte, lost ...[]byte) {
		r.restartWith(damaged, two()...)
		require.Contains(t, r.log.String(), "damaged records", "%s", lost[0])
		aside, err := os.ReadFile(r.file + ".bad")
		require.NoError(t, err)
		require.Equal(t, damaged, aside)
		alerts := r.monitor.Alerts()
		require.Len(t, alerts, 2)
		text := string(bytes.Join(lost, nil))
		for _, a := range alerts {
			require.Equal(t, alert.Firing, a.State)
			if !strings.Contains(text, a.ID) && !strings.Contains(text, `"notifier`) {
				require.Equal(t, 1, count(r.received.lines(), a.Rule+" firing"), "%s", lost[0])
			}
		}
		require.NotContains(t, strings.Join(r.received.lines(), "\n"), "resolved", "%s", lost[0])
	}
	end := len(lines[0])
	for i, line := range lines[1:] {
		i++
		flipped := bytes.Clone(line)
		flipped[len(line)/2] ^= 1
		check(slices.Concat(whole[:end], flipped, whole[end+len(line):]), line)
		for _, n := range []int{1, len(line) / 2, len(line) - 1} {
			check(slices.Clone(whole[:end+n]), lines[i:]...)
		}
		end += len(line)
	}
}

func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

// restartWith starts a process with this content of the file.
func (r *restartedProgram) restartWith(content []byte, rules ...alert.Rule) {
	require.NoError(r.t, os.WriteFile(r.file, content, 0o600))
	r.received = alertRecorder{told: r.received.alerts()[:2]}
	r.log.Reset()
	r.start(rules...)
	r.evaluateAfter(time.Second)
}

// The value of a firing alert changes at each evaluation, and its receiver is down.
func TestUnchangedStateIsNotWritten(t *testing.T) {
	for _, fails := range []error{nil, errors.New("down")} {
		r := newRestartedProgram(t)
		r.fails = fails
		value := 1.0
		r.start(alert.Rule{Name: "high", Value: alert.Gauge(func() float64 { return value }), When: alert.Above(0)})
		r.evaluateAfter(0)
		r.evaluateAfter(time.Second)
		before, err := os.Stat(r.file)
		require.NoError(t, err)
		for range 50 {
			value++
			r.evaluateAfter(time.Second)
		}
		after, err := os.Stat(r.file)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after))
		require.Equal(t, before.Size(), after.Size())
	}
}

// While an alert waits, the file gets the time of the evaluation at most twenty times, or once a
// minute if For or KeepFiring is longer than 20 minutes. The evaluations are 5 seconds apart.
func TestWaitingAlertIsWrittenSeldom(t *testing.T) {
	for wait, most := range map[time.Duration]int{time.Minute: 20, 10 * time.Minute: 20, time.Hour: 60} {
		r := newRestartedProgram(t)
		rule := r.rule(wait)
		rule.KeepFiring = wait
		writes := func() (n int) {
			info, err := os.Stat(r.file)
			require.NoError(t, err)
			for range wait/(5*time.Second) - 1 {
				r.evaluateAfter(5 * time.Second)
				next, err := os.Stat(r.file)
				require.NoError(t, err)
				if next.Size() != info.Size() || !os.SameFile(next, info) {
					n++
				}
				info = next
			}
			return n
		}
		r.bad = true
		r.start(rule)
		r.evaluateAfter(0)
		require.LessOrEqual(t, writes(), most, "pending for %v", wait)
		require.Empty(t, r.received.lines())
		r.evaluateAfter(5 * time.Second)
		r.bad = false
		r.evaluateAfter(5 * time.Second)
		require.LessOrEqual(t, writes(), most, "clearing for %v", wait)
		require.Equal(t, []string{"down firing"}, r.received.lines())
		r.evaluateAfter(5 * time.Second)
		require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())
	}
}

// At each moment of the wait, a restart adds at most a twentieth of the wait, and at most a minute.
func TestRestartWhileAnAlertWaits(t *testing.T) {
	for wait, most := range map[time.Duration]time.Duration{
		time.Minute: 5 * time.Second, 10 * time.Minute: 30 * time.Second, time.Hour: time.Minute,
	} {
		for before := 5 * time.Second; before < wait; before += wait / 7 {
			r := newRestartedProgram(t)
			r.bad = true
			r.start(r.rule(wait))
			r.evaluateAfter(0)
			waited := time.Duration(0)
			pass := func(d time.Duration) {
				for end := waited + d; waited < end && len(r.received.lines()) == 0; waited += 5 * time.Second {
					r.evaluateAfter(5 * time.Second)
				}
			}
			pass(before)
			r.start(r.rule(wait))
			r.evaluateAfter(10 * time.Minute)
			pass(2 * wait)
			require.LessOrEqual(t, wait, waited)
			require.LessOrEqual(t, waited, wait+most, "restarted after %v of %v", before, wait)
		}
	}
}

// A delivery writes its own alerts, so the cost of each is the same for 100 alerts and 1,000.
func TestDeliveryWritesOnlyItsAlerts(t *testing.T) {
	for _, alerts := range []int{100, 1000} {
		r := newRestartedProgram(t)
		written, last := int64(0), os.FileInfo(nil)
		measure := func() {
			info, err := os.Stat(r.file)
			require.NoError(t, err)
			if last != nil && os.SameFile(last, info) {
				written += info.Size() - last.Size()
			} else {
				written += info.Size()
			}
			last = info
		}
		c := r.config()
		c.Budget = time.Minute
		c.Notify = []alert.Notifier{alert.Func("book", func(context.Context, alert.Alert) error {
			measure()
			return nil
		})}
		var keys []int
		for i := range alerts {
			keys = append(keys, i)
		}
		r.monitor = alert.NewMonitor(c, alert.Rule{Name: "down", When: alert.Above(0), Value: alert.Each(
			slices.All(keys), func(int) alert.Value { return alert.Bool(func() bool { return true }) })})
		r.monitor.Evaluate(r.now)
		require.NoError(t, r.monitor.Flush(t.Context()))
		measure()
		require.Less(t, written/int64(alerts), int64(2000), "bytes for each of %d alerts", alerts)
	}
}

func TestStateFileThatWasRemovedIsWrittenAgain(t *testing.T) {
	for name, harm := range map[string]func(file string) error{
		"removed":  os.Remove,
		"emptied":  func(file string) error { return os.Truncate(file, 0) },
		"replaced": func(file string) error { return os.WriteFile(file, []byte("other"), 0o600) },
	} {
		r := newRestartedProgram(t)
		r.bad = true
		r.start(r.rule(0))
		r.evaluateAfter(0)
		require.NoError(t, harm(r.file), name)
		r.evaluateAfter(time.Second)
		r.start(r.rule(0))
		r.evaluateAfter(time.Second)
		require.Equal(t, []string{"down firing"}, r.received.lines(), name)
	}
}

func TestStateFileForgetsWhatIsOver(t *testing.T) {
	r := newRestartedProgram(t)
	r.bad = true
	r.start(r.rule(0))
	r.evaluateAfter(0)
	r.bad = false
	r.evaluateAfter(time.Second)
	r.evaluateAfter(16 * time.Minute)
	r.evaluateAfter(time.Second) // the receivers' part is forgotten after the alert
	r.monitor.Kill()
	j, _, err := journal.Open(r.file, alert.StateFormat)
	require.NoError(t, err)
	defer j.Close()
	for key := range j.All {
		require.Equal(t, "notifier book", key)
	}
}

// The clock of the machine was an hour fast, and is right when the process starts again.
func TestClockThatWentBackBetweenTwoProcesses(t *testing.T) {
	r := newRestartedProgram(t)
	rule := r.rule(10 * time.Second)
	rule.KeepFiring = 10 * time.Second
	r.bad = true
	r.start(rule)
	r.evaluateAfter(0)
	r.evaluateAfter(4 * time.Second)
	r.start(rule)
	r.evaluateAfter(-time.Hour)
	r.evaluateAfter(5 * time.Second)
	require.Empty(t, r.received.lines(), "pending for 9s")
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing"}, r.received.lines())
	fired := r.monitor.Alerts()[0].StartsAt

	r.start(rule)
	r.evaluateAfter(-time.Hour)
	back := r.now
	require.True(t, r.monitor.Alerts()[0].StartsAt.Equal(back), "no time of an alert is in the future: %v", fired)
	r.bad = false
	r.evaluateAfter(time.Second)
	r.evaluateAfter(4 * time.Second)
	r.start(rule)
	r.evaluateAfter(-time.Hour)
	r.evaluateAfter(5 * time.Second)
	require.Len(t, r.received.lines(), 1, "clear for 9s")
	r.evaluateAfter(time.Second)
	require.Equal(t, []string{"down firing", "down resolved"}, r.received.lines())

	r.start(rule)
	r.evaluateAfter(-time.Hour)
	require.Len(t, r.monitor.Alerts(), 1)
	r.evaluateAfter(16 * time.Minute)
	require.Empty(t, r.monitor.Alerts(), "a resolved alert is remembered for 15 minutes")
	require.Len(t, r.received.lines(), 2)
}

// Each record of the fuzzer has the right checksum.
func FuzzStateFile(f *testing.F) {
	for _, record := range []string{
		`{"k":"at","v":"2026-01-01T00:00:00Z"}`,
		`{"k":"alert 0","v":{"labels":{"alertname":"r"},"phase":2,"value":2}}` + "\n" + `{"k":"rule r","v":{"threshold":1}}`,
		`{"k":"entry x n","v":{"state":"firing","due":{"id":"x","state":"firing"}}}` + "\n" +
			`{"k":"entry y n","v":{"state":"resolved","held":true}}`,
	} {
		f.Add([]byte(record))
	}
	f.Fuzz(func(t *testing.T, records []byte) {
		file := filepath.Join(t.TempDir(), "alerts")
		text := []byte(alert.StateFormat + "\n")
		for record := range bytes.Lines(records) {
			record = bytes.TrimSuffix(record, []byte("\n"))
			sum := crc32.Checksum(append([]byte(alert.StateFormat), record...), crc32.MakeTable(crc32.Castagnoli))
			text = fmt.Appendf(text, "%08x %s\n", sum, record)
		}
		require.NoError(t, os.WriteFile(file, text, 0o600))
		j, damaged, err := journal.Open(file, alert.StateFormat)
		require.NoError(t, err)
		alert.RestoreState(j)
		require.NoError(t, j.Commit())
		require.NoError(t, j.Close())
		if damaged > 0 {
			_, damaged, err = journal.Open(file, alert.StateFormat)
			require.NoError(t, err)
			require.Zero(t, damaged)
		}
	})
}

func TestRecordsThatAreNoStateAreSkipped(t *testing.T) {
	j, _, err := journal.Open(filepath.Join(t.TempDir(), "alerts"), alert.StateFormat)
	require.NoError(t, err)
	require.NoError(t, j.Set("entry x n", map[string]any{"state": "firing"}))
	require.NoError(t, j.Set("notifier n", true))
	require.Zero(t, alert.RestoreState(j))
	for key, value := range map[string]any{
		"entry y n": map[string]any{"state": "nonsense"}, "entry z n": 1, "alert x": map[string]any{"labels": map[string]string{"alertname": "r"}},
		"at": "yesterday", "rule r": 1, "nonsense": 1, "": 1,
	} {
		require.NoError(t, j.Set(key, value))
	}
	require.Equal(t, 7, alert.RestoreState(j))
	require.NoError(t, j.Close())
}
