package alert_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/testenv"
)

const killRules = 8

// TestMain runs the program of TestKilledProcessLosesNothing if the environment variable
// WEIR_KILLED is set.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WEIR_KILLED"); dir != "" {
		runKilled(dir, os.Getenv("WEIR_KILLED_URL"), os.Getenv("WEIR_KILLED_PROCESS"))
		return
	}
	os.Exit(m.Run())
}

// runKilled runs a monitor until the process is killed. The rule rN holds while the file badN
// exists in the directory.
func runKilled(dir, url, process string) {
	var rules []alert.Rule
	for i := range killRules {
		bad := func() bool {
			_, err := os.Stat(filepath.Join(dir, fmt.Sprint("bad", i)))
			return err == nil
		}
		rules = append(rules, alert.Rule{Name: fmt.Sprint("r", i), Value: alert.Bool(bad), When: alert.Above(0)})
	}
	poster := func(name string) *bookNotifier { return &bookNotifier{name: name, url: url, process: process} }
	m := alert.NewMonitor(alert.Config{
		Interval:  2 * time.Millisecond,
		Notify:    []alert.Notifier{poster(singleBook), batchBookNotifier{poster(batchBook)}, poster(failingBook)},
		StateFile: filepath.Join(dir, "state"), Instance: "killed",
	}, rules...)
	_ = m.Run(context.Background())
}

// bookNotifier is a notifier that sends alerts to the notificationBooks.
type bookNotifier struct {
	name, url, process string
	requests           int
}

func (p *bookNotifier) Name() string { return p.name }

func (p *bookNotifier) Notify(ctx context.Context, a alert.Alert) error {
	return p.post(ctx, []alert.Alert{a})
}

func (p *bookNotifier) post(ctx context.Context, alerts []alert.Alert) error {
	var lines []string
	for _, a := range alerts {
		lines = append(lines, fmt.Sprintf("%s %s %d", a.Rule, a.State, a.StartsAt.UnixNano()))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/"+p.name, strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		return err
	}
	p.requests++
	req.Header.Set("X-Number", fmt.Sprint(p.process, " ", p.requests))
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

type batchBookNotifier struct{ *bookNotifier }

func (p batchBookNotifier) NotifyAll(ctx context.Context, alerts []alert.Alert) error {
	return p.post(ctx, alerts)
}

// killedProcess starts the processes, and makes and removes the files that their rules watch.
type killedProcess struct {
	t         *testing.T
	dir, url  string
	books     *notificationBooks
	bad       [killRules]bool
	began     [killRules]int // incidents
	processes int
}

func (k *killedProcess) start() *exec.Cmd {
	k.processes++
	c := exec.CommandContext(k.t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "WEIR_KILLED="+k.dir, "WEIR_KILLED_URL="+k.url, fmt.Sprint("WEIR_KILLED_PROCESS=", k.processes))
	require.NoError(k.t, c.Start())
	return c
}

// receiversKnow reports whether the named receivers know whether a rule fires. If rule is negative,
// it reports whether they know this about every rule.
func (k *killedProcess) receiversKnow(rule int, names ...string) bool {
	for _, name := range names {
		firing := k.books.firing(name)
		for i, is := range k.bad {
			if (rule < 0 || rule == i) && firing[fmt.Sprint("r", i)] != is {
				return false
			}
		}
	}
	return true
}

// change begins or ends an incident of a rule. It does so only if the receivers know the current
// state of the rule, so each incident has to be announced and resolved.
func (k *killedProcess) change() {
	i := rand.IntN(killRules)
	if !k.receiversKnow(i, singleBook, batchBook) {
		waitAtMost(k.books.got, 200*time.Millisecond)
		return
	}
	file := filepath.Join(k.dir, fmt.Sprint("bad", i))
	k.bad[i] = !k.bad[i]
	if k.bad[i] {
		k.began[i]++
		require.NoError(k.t, os.WriteFile(file, nil, 0o600))
	} else {
		require.NoError(k.t, os.Remove(file))
	}
}

// check compares the books of a notifier with the incidents that happened.
func (k *killedProcess) check(name string) {
	for i, began := range k.began {
		got := k.books.incidents(name)[fmt.Sprint("r", i)]
		require.Len(k.t, got, began, "incidents of r%d at %s", i, name)
		open := 0
		for start, incident := range got {
			require.True(k.t, incident.announced, "r%d at %s: %s", i, name, start)
			if !incident.resolved {
				open++
			}
		}
		require.Equal(k.t, k.bad[i], open == 1, "r%d at %s: %d incidents are not resolved", i, name, open)
	}
}

// A process is killed at random moments while incidents begin and end. Each incident is announced
// and resolved once. At each kill, each notifier has at most one request in flight. Only the
// notifications of that request may come twice.
func TestKilledProcessLosesNothing(t *testing.T) {
	kills := testenv.Repeat(200, 5)
	k := &killedProcess{t: t, dir: t.TempDir(), books: newNotificationBooks()}
	server := httptest.NewServer(k.books)
	defer server.Close()
	k.url = server.URL
	names := []string{singleBook, batchBook, failingBook}
	for range kills {
		c := k.start()
		for range 1 + rand.IntN(8) {
			k.change()
			if rand.IntN(2) == 0 {
				waitAtMost(k.books.got, 200*time.Millisecond)
			}
		}
		// anywhere in the evaluation, the write or the delivery
		waitAtMost(nil, rand.N(5*time.Millisecond))
		require.NoError(t, c.Process.Kill())
		_ = c.Wait()
		for _, name := range names {
			_, wrong := k.books.repeated(name)
			require.Empty(t, wrong, "%s: notifications that came twice", name)
		}
	}
	k.books.failing.Store(false)
	c := k.start()
	require.Eventually(t, func() bool { return k.receiversKnow(-1, names...) }, time.Minute, 10*time.Millisecond, "the receivers know what is true")
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	k.check(singleBook)
	k.check(batchBook)
	for _, name := range names {
		twice, wrong := k.books.repeated(name)
		require.Empty(t, wrong, "%s: notifications that came twice", name)
		n, batches := k.books.notifications(name)
		t.Logf("%s: %d kills, %d notifications, %d batches of several, %d came twice, none lost", name, kills, n, batches, twice)
	}
}

func waitAtMost(c <-chan struct{}, d time.Duration) {
	select {
	case <-c:
	case <-time.After(d):
	}
}
