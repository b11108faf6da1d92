package alert_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/testenv"
)

// The source has had ten failures before the change and one success since.
func TestAReplacedRuleKeepsItsSamples(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		value     func(of *totals) alert.Value
		kept      float64 // with the same source and parameters
		restarted float64 // with another source
		other     func(of *totals) alert.Value
	}{
		"failure rate": {
			func(of *totals) alert.Value { return alert.FailureRate(of, time.Minute) }, 10. / 11, 0,
			func(of *totals) alert.Value { return alert.FailureRate(of, time.Hour) },
		},
		"slow rate": {
			func(of *totals) alert.Value { return alert.SlowRate(of, time.Minute) }, 10. / 11, 0,
			func(of *totals) alert.Value { return alert.FailureRate(of, time.Minute) },
		},
		"rate": {
			func(of *totals) alert.Value { return alert.Rate(of, time.Minute) }, 11. / 20, 1. / 10,
			func(of *totals) alert.Value { return alert.Rate(of, time.Hour) },
		},
		"burn rate": {
			func(of *totals) alert.Value { return alert.BurnRate(of, 0.5, time.Minute, 40*s) }, 10. / 11 * 2 / 3, 0,
			func(of *totals) alert.Value { return alert.BurnRate(of, 0.6, time.Minute, 40*s) },
		},
		"refusals": {
			func(of *totals) alert.Value { return alert.Refusals(of, time.Minute) }, 10, 0,
			func(of *totals) alert.Value { return alert.Refusals(of, time.Hour) },
		},
		"each": {func(of *totals) alert.Value {
			return alert.Each(maps.All(map[string]*totals{"a": of}), func(of *totals) alert.Value { return alert.FailureRate(of, time.Minute) })
		}, 10. / 11, 0, func(of *totals) alert.Value {
			return alert.Each(maps.All(map[string]*totals{"a": of}), func(of *totals) alert.Value { return alert.FailureRate(of, time.Hour) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			measured := func(replacement func(of *totals) alert.Value) float64 {
				source, start := new(totals), time.Now()
				rule := alert.Rule{Name: "r", Value: c.value(source), When: alert.Above(0.4)}
				monitor := alert.NewMonitor(alert.Config{Logger: discardLogger()}, rule)
				monitor.Evaluate(start)
				source.Failures, source.Refused, source.Slow = 10, 0, 10
				if name == "refusals" {
					source.Refused = 10
				}
				monitor.Evaluate(start.Add(10 * s))
				rule.Value = replacement(source)
				require.NoError(t, monitor.Reconfigure(alert.Config{Logger: discardLogger()}, rule))
				require.NoError(t, monitor.Reconfigure(alert.Config{Logger: discardLogger()}, rule))
				monitor.Evaluate(start.Add(10 * s))
				source.Successes = 1
				monitor.Evaluate(start.Add(20 * s))
				return metricsOf(monitor)["weir.alert.value|r|"]
			}
			require.InDelta(t, c.kept, measured(c.value), 1e-9)
			require.InDelta(t, c.restarted, measured(c.other), 1e-9)
		})
	}
}

func TestRunAdoptsANewConfigAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var evaluations atomic.Int64
		var heard alertRecorder
		c := heard.config("n")
		c.Interval = time.Hour
		counted := alert.Rule{Name: "counted", When: alert.Above(1), Value: alert.Gauge(func() float64 { return float64(5 * min(evaluations.Add(1)-1, 1)) })}
		monitor := alert.NewMonitor(c, counted)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { require.NoError(t, monitor.Run(ctx)) })
		synctest.Wait()
		require.EqualValues(t, 1, evaluations.Load())

		var newcomer alertRecorder
		c.Interval, c.Notify = time.Second, append(c.Notify, newcomer.notifier("m"))
		require.NoError(t, monitor.Reconfigure(c, counted))
		synctest.Wait()
		require.EqualValues(t, 2, evaluations.Load(), "it evaluates at once")
		require.Equal(t, []string{"counted firing"}, heard.lines())
		require.Equal(t, []string{"counted firing"}, newcomer.lines())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.InDelta(t, 12, evaluations.Load(), 1, "by the new interval")

		c.Notify = c.Notify[1:]
		require.NoError(t, monitor.Reconfigure(c))
		synctest.Wait()
		require.Len(t, heard.lines(), 1, "it is gone")
		require.Equal(t, []string{"counted firing", "counted resolved"}, newcomer.lines())
		cancel()
		running.Wait()
	})
}

// The Value of a rule calls Reconfigure, as it would if it read the rules from a file.
func TestReconfigureDuringAnEvaluation(t *testing.T) {
	bad := 5.0
	var heard alertRecorder
	var monitor *alert.Monitor
	rule := changedRule(gaugeRule("r", &bad), func(r *alert.Rule) {
		r.Value = alert.Gauge(func() float64 {
			require.NoError(t, monitor.Reconfigure(heard.config("n"), gaugeRule("s", &bad)))
			return bad
		})
	})
	monitor = alert.NewMonitor(heard.config("n"), rule)
	start := time.Now()
	monitor.Evaluate(start)
	require.Len(t, monitor.Alerts(), 1, "the evaluation ends with its config")
	require.Equal(t, "r", monitor.Alerts()[0].Rule)
	require.Contains(t, metricsOf(monitor), "weir.alert.state|s||inactive", "then the new config is in effect")
	monitor.Evaluate(start.Add(time.Second))
	require.NoError(t, monitor.Flush(t.Context()))
	require.ElementsMatch(t, []string{"s firing", "r resolved"}, heard.lines(), "r fired and resolved before anything was delivered")
}

func TestARemovedNotifierIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := 5.0
		var attempts atomic.Int64
		c := alert.Config{Logger: discardLogger(), Notify: []alert.Notifier{alert.Func("n", func(context.Context, alert.Alert) error {
			attempts.Add(1)
			return errOutage
		})}}
		monitor := alert.NewMonitor(c, gaugeRule("r", &bad))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { require.NoError(t, monitor.Run(ctx)) })
		time.Sleep(time.Minute)
		require.Greater(t, attempts.Load(), int64(2))
		c.Notify = nil
		require.NoError(t, monitor.Reconfigure(c, gaugeRule("r", &bad)))
		synctest.Wait()
		before := attempts.Load()
		time.Sleep(time.Hour)
		require.Equal(t, before, attempts.Load())
		cancel()
		running.Wait()
	})
}

// reloadTest is a monitor that is reconfigured at random. It records what each receiver heard since
// the receiver was last added.
type reloadTest struct {
	mu     sync.Mutex
	values [6]float64
	told   map[string][]alert.Alert
}

func (r *reloadTest) config(rnd *rand.Rand) (c alert.Config, rules []alert.Rule) {
	c = alert.Config{Logger: discardLogger(), Instance: "-", Interval: time.Duration(1+rnd.IntN(3)) * time.Second}
	for i := range 3 {
		if rnd.IntN(4) > 0 {
			c.Notify = append(c.Notify, r.notifier(fmt.Sprint("n", i)))
		}
	}
	for i := range r.values {
		if rnd.IntN(3) > 0 {
			rules = append(rules, alert.Rule{
				Name: fmt.Sprint("r", i), When: alert.Above(0.5), For: time.Duration(rnd.IntN(2)) * time.Second,
				Severity: []string{"page", "ticket"}[rnd.IntN(8)/7],
				Value: alert.Gauge(func() float64 {
					r.mu.Lock()
					defer r.mu.Unlock()
					return r.values[i]
				}),
			})
		}
	}
	return c, rules
}

// notifier returns a notifier that fails every third time and records what it delivers.
func (r *reloadTest) notifier(name string) alert.Notifier {
	calls := 0
	return alert.Func(name, func(_ context.Context, a alert.Alert) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if calls++; calls%3 == 0 {
			return errOutage
		}
		r.told[name] = append(r.told[name], a)
		return nil
	})
}

// requireToldOnce requires that no receiver got the same message about an alert twice in a row. It
// returns the last state of each alert that each receiver got.
func (r *reloadTest) requireToldOnce(t *testing.T) map[string]map[string]alert.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := map[string]map[string]alert.State{}
	for name, told := range r.told {
		last[name] = map[string]alert.State{}
		since := map[string]time.Time{}
		for _, a := range told {
			same := last[name][a.ID] == a.State && since[a.ID].Equal(a.StartsAt)
			require.False(t, same, "%s heard twice of %s, which is %s", name, a.Rule, a.State)
			last[name][a.ID], since[a.ID] = a.State, a.StartsAt
		}
	}
	return last
}

// reconfigureWhileRunning replaces the config of a running monitor n times.
func reconfigureWhileRunning(t *testing.T, n int, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := &reloadTest{told: map[string][]alert.Alert{}}
		c, rules := r.config(rnd)
		monitor := alert.NewMonitor(c, rules...)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { require.NoError(t, monitor.Run(ctx)) })
		for range n {
			time.Sleep(time.Duration(rnd.Int64N(int64(5 * time.Second))))
			r.mu.Lock()
			r.values[rnd.IntN(len(r.values))] = float64(rnd.IntN(2))
			r.mu.Unlock()
			c, rules = r.config(rnd)
			require.NoError(t, monitor.Reconfigure(c, rules...))
			synctest.Wait() // a removed notifier is not called any more
			r.forgetRemoved(c)
		}
		time.Sleep(time.Hour)
		last := r.requireToldOnce(t)
		for _, n := range c.Notify {
			for _, a := range monitor.Alerts() {
				require.Equal(t, a.State, last[n.Name()][a.ID], "%s about %s", n.Name(), a.Rule)
			}
		}
		require.NoError(t, monitor.Reconfigure(c))
		time.Sleep(time.Hour)
		for name, states := range r.requireToldOnce(t) {
			for id, state := range states {
				require.Equal(t, alert.Resolved, state, "%s about %s", name, id)
			}
		}
		cancel()
		running.Wait()
	})
}

// forgetRemoved deletes what removed receivers have heard. A receiver that is added again has heard
// nothing.
func (r *reloadTest) forgetRemoved(c alert.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.told, func(name string, _ []alert.Alert) bool {
		return !slices.ContainsFunc(c.Notify, func(n alert.Notifier) bool { return n.Name() == name })
	})
}

func TestAMonitorNotifiesEachReceiverOnceDuringReconfigure(t *testing.T) {
	for seed := range uint64(testenv.Repeat(200, 5)) {
		reconfigureWhileRunning(t, 50, seed)
	}
}
