package weirconfig_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/weirconfig"
)

// watchedSet is a set whose file is watched.
type watchedSet struct {
	*weirconfig.Set
	path string
	mu   sync.Mutex
	log  bytes.Buffer
}

func (w *watchedSet) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// countLogs returns how many records have the message.
func (w *watchedSet) countLogs(message string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.log.String(), message)
}

func (w *watchedSet) write(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.path, []byte(text), 0o600))
}

const (
	applied    = "the file was applied"
	notApplied = "the file was not applied"
)

// watchFile watches a file with the text until the test ends.
func watchFile(t *testing.T, text string) *watchedSet {
	t.Helper()
	return watchFileWith(t, text, weirconfig.Config{})
}

// watchFileWith is watchFile with a config. By default its logs are counted.
func watchFileWith(t *testing.T, text string, c weirconfig.Config) *watchedSet {
	t.Helper()
	w := &watchedSet{path: filepath.Join(t.TempDir(), "w.yaml")}
	w.write(t, text)
	file, err := weirconfig.Load(w.path)
	require.NoError(t, err)
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(w, nil))
	}
	w.Set, err = weirconfig.New(file, c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return w
}

// The first signal.Notify of a process starts goroutines that must not be in a bubble of synctest.
func TestMain(m *testing.M) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
	os.Exit(m.Run())
}

func TestWatchAppliesAChangedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchFile(t, `gates: {a: {rate: 1/h, burst: 1}}`)
		time.Sleep(time.Minute)
		require.Zero(t, w.countLogs(applied), "it is as it was")
		w.write(t, `gates: {a: {rate: 1/h, burst: 3}}`)
		time.Sleep(4*time.Second + 1)
		require.Equal(t, 1, w.countLogs(applied))
		require.Equal(t, 1, allowedOfTen(t, w.Gate("a")), "a bucket keeps its tokens")

		w.write(t, `gates: {a: {rate: none}}`)
		time.Sleep(time.Hour)
		require.Equal(t, 1, w.countLogs(notApplied), "once, although it is read again")
		require.Equal(t, 1, allowedOfTen(t, w.Gate("a")), "by the rate of the file before")
		w.write(t, `gates: {a: {}}`)
		time.Sleep(32*time.Second + 1) // it lacks a setting
		require.Equal(t, 2, w.countLogs(applied))
		require.Equal(t, 10, allowedOfTen(t, w.Gate("a")))
	})
}

func TestWatchAppliesNoPartOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchFile(t, `gates: {a: {}}`)
		for n := range 20 { // it is written for 20 s
			w.write(t, "gates: {a: {}}\n"+strings.Repeat("#", n+1))
			time.Sleep(time.Second)
		}
		require.Zero(t, w.countLogs(applied))
		time.Sleep(4*time.Second + 1)
		require.Equal(t, 1, w.countLogs(applied))
	})
}

// A writer can stall at the end of a line. What it has written until then is a file without some
// objects, which would refuse all their calls.
func TestWatchWaitsBeforeItRemovesAnything(t *testing.T) {
	const whole = "gates:\n  a: {}\n  b:\n    breaker: {window: 5s}\n    rate: 1/h\n    burst: 1\n    max_concurrent: 1\ngroups: {g: {}}\nlimits: {l: {}}\nrules: [{name: r, of: a, value: tripped}]\nsinks: {s: {kind: log}}\n"
	for lacks, part := range map[string]string{
		"gates.b": strings.Replace(whole, "  b:\n    breaker: {window: 5s}\n    rate: 1/h\n    burst: 1\n    max_concurrent: 1\n", "", 1), "groups": strings.Replace(whole, "groups: {g: {}}\n", "", 1),
		"limits": strings.Replace(whole, "limits: {l: {}}\n", "", 1), "rules.r": strings.Replace(whole, "name: r", "name: other", 1),
		"sinks":                  strings.Replace(whole, "sinks: {s: {kind: log}}\n", "", 1),
		"gates.b.max_concurrent": strings.Replace(whole, "    max_concurrent: 1\n", "", 1),
		"gates.b.burst":          strings.Replace(whole, "    rate: 1/h\n    burst: 1\n", "", 1),
		"gates.b.breaker.window": strings.Replace(whole, "{window: 5s}", "{}", 1),
		"gates.b.breaker":        strings.Replace(whole, "    breaker: {window: 5s}\n", "", 1),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := watchFile(t, whole)
			w.write(t, part)
			time.Sleep(29 * time.Second)
			require.Zero(t, w.countLogs(applied), lacks)
			require.Equal(t, 1, w.countLogs("lacks="), lacks)
			require.Equal(t, 1, w.countLogs("lacks="+lacks+"\n"), lacks)
			w.write(t, whole+"# the rest has come\n")
			time.Sleep(4*time.Second + 1)
			require.Equal(t, 1, w.countLogs(applied), lacks)
			require.NoError(t, w.Gate("b").Run(t.Context(), succeed))
			w.write(t, part)
			time.Sleep(32*time.Second + 1)
			require.Equal(t, 2, w.countLogs(applied), "it is meant: %s", lacks)
		})
	}
}

// A setting that is still there lacks nothing, whatever its value is and in which order it stands.
func TestWatchAppliesZeroValuesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchFile(t, "gates: {a: {rate: 1/h, burst: 1, refuse_hopeless: true}}\n"+
			"rules: [{name: r, of: a, value: tripped, for: 1m}, {name: s, of: a, value: tripped}]\n")
		w.write(t, "rules: [{name: s, of: a, value: tripped}, {name: r, of: a, value: tripped, for: 0s}]\n"+
			"gates: {a: {burst: 2, rate: 1/h, refuse_hopeless: false}}\n")
		time.Sleep(4*time.Second + 1)
		require.Equal(t, 1, w.countLogs(applied))
	})
}

// The file and the secret that it refers to arrive in any order, and the secret changes later.
func TestWatchFollowsReferences(t *testing.T) {
	for _, c := range []struct {
		ref string
		set func(path, value string)
	}{
		{ref: "${file:PATH}", set: func(path, value string) { require.NoError(t, os.WriteFile(path, []byte(value+"\n"), 0o600)) }},
		{ref: "${WEIR_REASON}", set: func(_, value string) { t.Setenv("WEIR_REASON", value) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := watchFile(t, `gates: {a: {}}`)
			path := filepath.Join(filepath.Dir(w.path), "secret")
			text := `gates: {a: {breaker: {force: forced_open, force_reason: "` + strings.Replace(c.ref, "PATH", path, 1) + `"}}}`
			t.Setenv("WEIR_REASON", "")
			w.write(t, text)
			time.Sleep(time.Hour + 1)
			require.Equal(t, 1, w.countLogs(notApplied), "once, while the reference has no value")
			require.NotEmpty(t, w.Notice())
			for i, value := range []string{"first", "second"} {
				c.set(path, value)
				time.Sleep(4*time.Second + 1)
				require.Equal(t, i+1, w.countLogs(applied))
				require.ErrorContains(t, w.Gate("a").Run(t.Context(), succeed), value)
				require.Empty(t, w.Notice())
				time.Sleep(time.Hour)
				require.Equal(t, i+1, w.countLogs(applied), "it does not change any more")
			}
		})
	}
}

func TestWatchContinuesWithoutTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchFile(t, `gates: {a: {rate: 1/h, burst: 1}}`)
		require.NoError(t, os.Remove(w.path))
		time.Sleep(time.Hour)
		require.Equal(t, 1, w.countLogs("the file cannot be read"))
		require.Equal(t, 1, allowedOfTen(t, w.Gate("a")))

		// A ConfigMap is a directory that a symbolic link names.
		dir := filepath.Dir(w.path)
		for _, name := range []string{"old", "new"} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name, "w.yaml"), []byte("gates: {"+name+": {}}"), 0o600))
		}
		require.NoError(t, os.Symlink("old", filepath.Join(dir, "data")))
		require.NoError(t, os.Symlink(filepath.Join("data", "w.yaml"), w.path))
		time.Sleep(32*time.Second + 1)
		require.NotNil(t, w.Gate("old"))
		require.NoError(t, os.Symlink("new", filepath.Join(dir, "tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "data")))
		time.Sleep(32*time.Second + 1)
		require.NotNil(t, w.Gate("new"))
		require.Equal(t, 2, w.countLogs(applied))
	})
}

func TestWatchNeedsALoadedFile(t *testing.T) {
	require.ErrorContains(t, newSet(t, `gates: {a: {}}`, weirconfig.Config{}).Watch(t.Context()), "needs a file that Load has read")
}
