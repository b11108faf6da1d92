//go:build linux

package alert_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/journal"
	"github.com/weir-go/weir/internal/testenv"
)

// A process with the rules "steady", which always holds, and "down", whose For is 20s, is replaced
// by a second and a third one. Each case combines what the receiver answers to the first process,
// what happens to the state file, what the alert "down" is doing when the first process ends, and
// how it ends. The receiver works again at most 30s after the second process has begun. These are
// the promises:
//
//   - Every process evaluates its rules, whatever has happened to the file.
//   - The receiver knows at last that an alert fires, if it does.
//   - The receiver knows at last that an alert does not fire, if it was told so by a process whose
//     state is not lost.
//   - Without a fault of the file, nothing is said twice, unless the receiver did not answer.
//   - Without any state, nothing is said about an alert that has ended.
//   - No alert has a time in the future, and its ID stays.
//   - A fault of the file is logged, and nothing is logged without a fault.
//   - The third process says nothing that the second one has said, so the file is good again.
//
// An alert that the receiver refuses for ever is dropped, so it is exempt from the second and the
// third promise. So is an alert that has resolved and fires again, if the file has neither: the
// second process takes both incidents for one.
type faultCase struct {
	answer, fault, moment string
	killed                bool // the first process is not stopped
	changes               bool // the condition changes while no process runs
	longer                bool // the receiver answers so for the first 30s of the second process
}

var (
	faultAnswers = []string{
		"delivered", "busy", "refused", "dropped", "hangs", "hears and hangs", "unreachable", "panics", "late",
	}
	faultMoments = []string{"pending", "firing", "resolved"}
	// The first of these faults lose no state, the second leave an old one, and the last lose all.
	intactFaults = []string{"none", "locked", "directory", "removed while running", "emptied while running"}
	staleFaults  = []string{"old", "full", "torn", "cut "}
	wholeFaults  = []string{"removed", "emptied", "foreign"}
)

func faultCases(faults ...string) (all []faultCase) {
	for i := range 1 << 3 {
		for _, answer := range faultAnswers {
			for _, fault := range faults {
				for _, moment := range faultMoments {
					all = append(all, faultCase{answer, fault, moment, i&1 != 0, i&2 != 0, i&4 != 0})
				}
			}
		}
	}
	return all
}

func TestEveryAnswerWithEveryFaultOfTheStateFile(t *testing.T) {
	faults := append(slices.Concat(intactFaults, wholeFaults), "old")
	for i := range 16 {
		faults = append(faults, fmt.Sprint("cut ", i), fmt.Sprint("flipped ", i))
	}
	runFaultCases(t, faultCases(faults...))
}

// The limit of the size of files, which stands for a full disk, holds for the whole process. So the
// cases run in a process of their own, which writes no other files.
func TestEveryAnswerWithAFullDisk(t *testing.T) {
	if os.Getenv("WEIR_FULL") != "" {
		signal.Ignore(syscall.SIGXFSZ)
		runFaultCases(t, faultCases("full", "torn", "full later"))
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), "WEIR_FULL=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), " cases")
}

// runFaultCases runs one in 47 of the cases, or all in a long test.
func runFaultCases(t *testing.T, cases []faultCase) {
	var wrong []string
	stride := testenv.Repeat(1, 47)
	began := time.Now()
	for i := 0; i < len(cases); i += stride {
		dir := shmDir(t)
		synctest.Test(t, func(t *testing.T) {
			r := &faultRun{faultCase: cases[i], t: t, file: filepath.Join(dir, "alerts"), heardBy: map[string][]heardAlert{}}
			r.run()
			for _, w := range r.wrong {
				wrong = append(wrong, fmt.Sprintf("%+v: %s", cases[i], w))
			}
		})
	}
	t.Logf("%d cases, %v", (len(cases)+stride-1)/stride, time.Since(began))
	if len(wrong) > 0 {
		require.FailNow(t, strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
}

// shmDir returns a directory in memory, in which a commit takes less time than on a disk.
func shmDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "weir") //nolint:usetesting // TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// limitFiles limits the size of files, as a full disk does.
func limitFiles(t *testing.T, most int64) {
	var l syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l))
	l.Cur = l.Max
	if most >= 0 {
		l.Cur = uint64(most)
	}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l))
}

type heardAlert struct {
	alert.Alert
	process int
}

type faultRun struct {
	faultCase
	t     *testing.T
	file  string
	wrong []string
	old   []byte // the file of a moment before
	log   bytes.Buffer

	harmed bool // a record is damaged

	monitor *alert.Monitor
	stop    context.CancelFunc
	done    chan struct{}

	mu           sync.Mutex
	bad, settled bool
	process      int
	answers      string
	stopped      chan struct{} // closed when the process has ended
	heardBy      map[string][]heardAlert
}

func (r *faultRun) check(ok bool, format string, args ...any) {
	if !ok {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

func (r *faultRun) set(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn()
}

func (r *faultRun) notify(ctx context.Context, a alert.Alert) error {
	r.mu.Lock()
	answer, stopped, process := r.answers, r.stopped, r.process
	r.mu.Unlock()
	switch answer {
	case "busy":
		return &alert.DeliveryError{Kind: "http_5xx", Pause: 7 * time.Second}
	case "refused":
		return &alert.DeliveryError{Kind: "http_4xx", Refused: true}
	case "dropped":
		return &alert.DeliveryError{Kind: "http_4xx", Permanent: true}
	case "unreachable":
		return &alert.DeliveryError{Kind: "unreachable", Err: errors.New("connection refused")}
	case "panics":
		panic("the notifier is broken")
	case "hangs":
		<-ctx.Done()
		return ctx.Err()
	case "hears and hangs":
		r.hears(a, process)
		<-ctx.Done()
		return ctx.Err()
	case "late":
		<-stopped
	}
	r.hears(a, process)
	return nil
}

func (r *faultRun) hears(a alert.Alert, process int) {
	now := time.Now()
	r.set(func() {
		r.check(!a.StartsAt.After(now) && !a.EndsAt.After(now) && !a.ActiveAt.After(now), "a time of %+v is in the future", a)
		heard := r.heardBy[a.Rule]
		r.check(len(heard) == 0 || heard[0].ID == a.ID, "the ID has changed")
		r.heardBy[a.Rule] = append(heard, heardAlert{a, process})
	})
}

// begin starts a process.
func (r *faultRun) begin(answers string) {
	r.set(func() {
		r.process++
		r.answers, r.stopped = answers, make(chan struct{})
	})
	r.log.Reset()
	is := func(bad func() bool) alert.Value {
		return alert.Bool(func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return bad()
		})
	}
	r.monitor = alert.NewMonitor(
		alert.Config{
			StateFile: r.file, Instance: "a", Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
			Notify: []alert.Notifier{alert.Func("receiver", r.notify)},
		},
		alert.Rule{Name: "steady", Value: is(func() bool { return !r.settled }), When: alert.Above(0)},
		alert.Rule{Name: "down", Value: is(func() bool { return r.bad }), When: alert.Above(0), For: 20 * time.Second})
	var ctx context.Context
	ctx, r.stop = context.WithCancel(r.t.Context())
	done := make(chan struct{})
	r.done = done
	go func() {
		defer close(done)
		_ = r.monitor.Run(ctx)
	}()
}

// end kills the process, or stops it.
func (r *faultRun) end(kill bool) {
	synctest.Wait()
	content, err := os.ReadFile(r.file)
	r.stop()
	<-r.done
	if !kill {
		ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Second)
		_ = r.monitor.Flush(ctx)
		cancel()
	}
	r.monitor.Kill()
	limitFiles(r.t, -1)
	r.set(func() { close(r.stopped) })
	synctest.Wait()
	if kill && err == nil {
		require.NoError(r.t, os.WriteFile(r.file, content, 0o600))
	} else if kill {
		_ = os.Remove(r.file)
	}
}

func (r *faultRun) run() {
	r.runFirst()
	time.Sleep(time.Minute)
	if r.changes {
		r.set(func() { r.bad = !r.bad })
	}
	lift := r.harm()
	r.runSecond(lift)
	r.runThird()
}

// runFirst runs the first process until "down" does what the case says.
func (r *faultRun) runFirst() {
	first := r.answer
	if r.moment == "resolved" {
		first = "delivered"
	}
	r.begin(first)
	time.Sleep(6 * time.Second)
	if r.moment == "pending" {
		r.harmRunning()
	}
	r.set(func() { r.bad = true })
	time.Sleep(12 * time.Second)
	if r.moment == "firing" {
		r.harmRunning()
	}
	if r.moment != "pending" {
		time.Sleep(28 * time.Second)
	}
	if r.moment == "resolved" {
		r.harmRunning()
		r.set(func() { r.bad, r.answers = false, r.answer })
		time.Sleep(12 * time.Second)
	}
	r.end(r.killed)
	if r.fault == "full" || r.fault == "torn" {
		r.logged("cannot be used")
	} else {
		r.logged("")
	}
}

// harmRunning harms the file while the first process runs.
func (r *faultRun) harmRunning() {
	synctest.Wait()
	content, err := os.ReadFile(r.file)
	require.NoError(r.t, err)
	r.old = content
	switch r.fault {
	case "removed while running":
		require.NoError(r.t, os.Remove(r.file))
	case "emptied while running":
		require.NoError(r.t, os.Truncate(r.file, 0))
	case "full":
		limitFiles(r.t, 1)
	case "torn":
		limitFiles(r.t, int64(len(content)+20))
	}
}

// harm harms the file between the processes, and returns what ends that.
func (r *faultRun) harm() (lift func()) {
	content, err := os.ReadFile(r.file)
	require.NoError(r.t, err)
	switch r.fault {
	case "removed":
		require.NoError(r.t, os.Remove(r.file))
	case "emptied":
		content = nil
	case "foreign":
		content = []byte("weir-alert-state 1\n{}\n")
	case "old":
		content = r.old
	case "locked":
		j, _, err := journal.Open(r.file, alert.StateFormat)
		require.NoError(r.t, err)
		return func() { _ = j.Close() }
	case "directory":
		require.NoError(r.t, os.Rename(r.file, r.file+".aside"))
		require.NoError(r.t, os.MkdirAll(filepath.Join(r.file, "x"), 0o700))
		return func() {
			require.NoError(r.t, os.RemoveAll(r.file))
			require.NoError(r.t, os.Rename(r.file+".aside", r.file))
		}
	case "full later":
		limitFiles(r.t, 1)
		return func() { limitFiles(r.t, -1) }
	default:
		before := bytes.Clone(content)
		content = r.damaged(content)
		r.harmed = !bytes.Equal(before, content) || !bytes.HasSuffix(content, []byte("\n"))
	}
	if r.fault != "removed" {
		require.NoError(r.t, os.WriteFile(r.file, content, 0o600))
	}
	return func() {}
}

// damaged returns the content with a damaged record, if it has so many.
func (r *faultRun) damaged(content []byte) []byte {
	n, begin := 0, 0
	for line := range bytes.Lines(content) {
		switch r.fault {
		case fmt.Sprint("cut ", n):
			return content[:begin+len(line)/2]
		case fmt.Sprint("flipped ", n):
			content[begin+len(line)/2] ^= 1
			return content
		}
		n, begin = n+1, begin+len(line)
	}
	return content
}

func isOneOf(fault string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return fault == p || strings.HasSuffix(p, " ") && strings.HasPrefix(fault, p)
	})
}

func (r *faultRun) isIntact() bool {
	return slices.Contains(intactFaults, r.fault) || r.fault == "full later"
}

// logged checks what the process has logged about the file. Several texts are alternatives.
func (r *faultRun) logged(parts ...string) {
	text := r.log.String()
	if parts[0] == "" {
		r.check(!strings.Contains(text, "state file"), "process %d logged: %s", r.process, text)
		return
	}
	for _, part := range parts {
		if strings.Contains(text, part) {
			return
		}
	}
	r.check(false, "process %d did not log %q: %s", r.process, parts, text)
}

func (r *faultRun) runSecond(lift func()) {
	answers := "delivered"
	if r.longer && r.answer != "late" {
		answers = r.answer
	}
	r.begin(answers)
	time.Sleep(30 * time.Second)
	synctest.Wait()
	lift()
	r.set(func() { r.answers = "delivered" })
	time.Sleep(8 * time.Minute)
	synctest.Wait()
	r.checkLog()
	states := map[string]alert.State{}
	for _, a := range r.monitor.Alerts() {
		states[a.Rule] = a.State
	}
	r.check(states["steady"] == alert.Firing && (states["down"] == alert.Firing) == r.bad, "the alerts are %v", states)
	r.checkKnows("steady", true)
	r.checkKnows("down", r.bad)
	r.checkTwice()
}

func (r *faultRun) checkLog() {
	switch {
	case isOneOf(r.fault, []string{"cut ", "flipped ", "torn"}):
		if r.harmed {
			r.logged("damaged records", "damaged or foreign")
		} else {
			r.logged("")
		}
	case r.fault == "emptied" || r.fault == "foreign":
		r.logged("damaged or foreign")
	case isOneOf(r.fault, []string{"locked", "directory"}):
		r.logged("cannot be used")
		r.logged("in use again")
	case r.fault == "full later":
	default:
		r.logged("")
	}
}

func (r *faultRun) last(rule string) (last heardAlert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if heard := r.heardBy[rule]; len(heard) > 0 {
		last = heard[len(heard)-1]
	}
	return last
}

// checkKnows checks what the receiver heard last.
func (r *faultRun) checkKnows(rule string, fires bool) {
	last := r.last(rule)
	isLost := isOneOf(r.fault, wholeFaults)
	if r.answer == "dropped" && (r.longer || !isLost) {
		return
	}
	isStale := isOneOf(r.fault, staleFaults) && r.moment == "resolved" && r.changes
	switch {
	case fires && isStale && rule == "down": // the end and the new begin are not in the file
	case fires:
		r.check(last.State == alert.Firing, "%s fires, but the receiver knows %q of process %d", rule, last.State, last.process)
	case r.isIntact() || last.process > 1:
		r.check(last.State != alert.Firing, "%s does not fire, but the receiver heard so from process %d", rule, last.process)
	}
	if isLost && !fires && r.process == 2 {
		r.check(last.process <= 1, "%s is over, but process %d said %q", rule, last.process, last.State)
	}
}

// checkTwice checks that nothing is said twice.
func (r *faultRun) checkTwice() {
	if !r.isIntact() || r.fault == "locked" || r.fault == "directory" ||
		r.answer == "hears and hangs" || r.answer == "late" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for rule, heard := range r.heardBy {
		seen := map[string]bool{}
		for _, a := range heard {
			what := fmt.Sprint(a.State, a.StartsAt.UnixNano())
			r.check(!seen[what], "process %d said twice: %s %s", a.process, rule, a.State)
			seen[what] = true
		}
	}
}

// runThird checks that the file is good again. At last no alert fires.
func (r *faultRun) runThird() {
	r.end(true)
	r.begin("delivered")
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, rule := range []string{"steady", "down"} {
		last := r.last(rule)
		r.check(last.process < 3, "process 3 said %s %s again", rule, last.State)
	}
	r.logged("")
	r.set(func() { r.bad, r.settled = false, true })
	time.Sleep(time.Minute)
	synctest.Wait()
	r.checkKnows("steady", false)
	r.checkKnows("down", false)
	r.end(false)
}
