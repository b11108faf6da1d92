package alert_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/stat"
)

// reentrant is user code of a monitor. The wanted part of it calls all methods of the monitor, but
// not while it does so already, because the methods call the user code again.
type reentrant struct {
	monitor atomic.Pointer[alert.Monitor]
	config  alert.Config
	rules   []alert.Rule
	wanted  string
	calling atomic.Bool
	called  atomic.Bool // the wanted part has called all methods
}

// methods returns the methods of the monitor.
func (r *reentrant) methods(m *alert.Monitor) map[string]func() {
	short := func(call func(ctx context.Context)) func() {
		return func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			defer cancel()
			call(ctx)
		}
	}
	return map[string]func(){
		"Alerts":     func() { m.Alerts() },
		"Observe":    func() { metricsOf(m) },
		"Histograms": func() { m.Histograms(func(*stat.Series, stat.Histogram) bool { return true }) },
		"Silence": func() {
			_ = m.Silence(alert.Silence{Name: "x", Match: []string{"a=b"}, EndsAt: time.Now().Add(time.Hour)})
		},
		"Silences":    func() { m.Silences() },
		"EndSilence":  func() { m.EndSilence("x") },
		"Reconfigure": func() { _ = m.Reconfigure(r.config, r.rules...) },
		"Test":        short(func(ctx context.Context) { _ = m.Test(ctx, "n") }),
		"Flush":       short(func(ctx context.Context) { _ = m.Flush(ctx) }),
		"Evaluate":    func() { m.Evaluate(time.Now()) },
		"Run":         short(func(ctx context.Context) { _ = m.Run(ctx) }),
		"admin": func() {
			for v := range m.Views {
				v.Name()
			}
			alert.Inside(friend.Key{}).Notifiers(m)
			alert.Inside(friend.Key{}).Rules(m)
		},
	}
}

// call calls all methods. Evaluate and Run panic during an evaluation.
func (r *reentrant) call(from string) {
	m := r.monitor.Load()
	if m == nil || from != r.wanted || !r.calling.CompareAndSwap(false, true) {
		return
	}
	defer r.calling.Store(false)
	for _, method := range r.methods(m) {
		func() {
			defer func() { _ = recover() }()
			method()
		}()
	}
	r.called.Store(true)
}

func (r *reentrant) Name() string { r.call("Name"); return "n" }

func (r *reentrant) Repeat() time.Duration { r.call("Repeat"); return time.Millisecond }

func (r *reentrant) OwnSilences() bool { r.call("OwnSilences"); return false }

func (r *reentrant) Notify(context.Context, alert.Alert) error { return nil }

func (r *reentrant) NotifyAll(context.Context, []alert.Alert) error {
	r.call("NotifyAll")
	return errors.New("down")
}

func (r *reentrant) Enabled(context.Context, slog.Level) bool { return true }

func (r *reentrant) Handle(_ context.Context, record slog.Record) error {
	r.call("log: " + record.Message)
	return nil
}

func (r *reentrant) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *reentrant) WithGroup(string) slog.Handler { return r }

func TestUserCodeMayCallEveryMethodOfItsMonitor(t *testing.T) {
	dir := t.TempDir()
	r := &reentrant{}
	hosts := map[string]int{"a": 1}
	var evaluations atomic.Int64
	r.rules = []alert.Rule{
		{
			Name: "one", When: alert.Above(0),
			Value:    alert.Gauge(func() float64 { r.call("Gauge"); return 1 }),
			Describe: func(alert.Alert) string { r.call("Describe"); return "" },
		},
		{Name: "each", When: alert.Above(0), Value: alert.Each(
			func(yield func(string, int) bool) { r.call("members"); maps.All(hosts)(yield) },
			func(int) alert.Value {
				r.call("Each")
				return alert.Bool(func() bool {
					if evaluations.Add(1)%2 == 1 {
						panic("fails")
					}
					return true
				})
			})},
	}
	r.config = alert.Config{
		Instance: "i", Interval: time.Millisecond, Budget: 10 * time.Second,
		StateFile: filepath.Join(dir, "missing", "state"), Notify: []alert.Notifier{r}, Logger: slog.New(r),
	}
	want := []string{
		"Gauge", "Describe", "members", "Each", "NotifyAll", "Name", "Repeat", "OwnSilences",
		"log: alert: state file cannot be used, will retry", "log: alert: delivery failed, will retry",
		"log: alert: rule panicked", "log: alert: rule recovered", "log: alert: notifier removed with undelivered alerts",
	}
	for _, from := range want {
		r.monitor.Store(nil)
		r.wanted = from
		r.called.Store(false)
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			// On a busy machine a Flush may end before an attempt does.
			for err == nil && !r.called.Load() {
				err = r.use(t.Context())
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			require.Fail(t, "a method is not called, or does not return when it is called, by: "+from)
		}
		require.NoError(t, err)
	}
}

// use makes a monitor call all of the user code.
func (r *reentrant) use(ctx context.Context) error {
	m := alert.NewMonitor(r.config, r.rules...)
	r.monitor.Store(m)
	for range 4 {
		for !evaluates(m) {
			runtime.Gosched()
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		_ = m.Flush(short)
		cancel()
	}
	none := r.config
	none.Notify = nil
	return errors.Join(m.Reconfigure(r.config, r.rules...), m.Reconfigure(none, r.rules...))
}

// evaluates calls Evaluate. It reports false if user code has called Evaluate or Run just then, as
// NotifyAll may after the end of the Flush that began the attempt.
func evaluates(m *alert.Monitor) (ok bool) {
	defer func() {
		if v := recover(); v != nil && v != "alert: the monitor is evaluating already" {
			panic(v)
		}
	}()
	m.Evaluate(time.Now())
	return true
}
