package alert_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// evaluations returns how many evaluations of the rule ended with the error.
func evaluations(m *alert.Monitor, rule, kind string) float64 {
	return metricsOf(m)[instrument.AlertEvaluations.Name+"|"+rule+"||"+kind]
}

func TestFailingRuleDoesNotStopOthers(t *testing.T) {
	for kind, read := range map[string]func() float64{
		"panic":      func() float64 { panic("broken") },
		"goexit":     func() float64 { runtime.Goexit(); return 0 },
		"not_finite": func() float64 { return math.Inf(-1) },
	} {
		t.Run(kind, func(t *testing.T) {
			broken := false
			m := alert.NewMonitor(alert.Config{Logger: discardLogger()},
				alert.Rule{Name: "bad", When: alert.Above(0), For: 10 * s, Value: alert.Gauge(func() float64 {
					if broken {
						return read()
					}
					return 1
				})},
				alert.Rule{Name: "good", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 })})
			start := time.Now()
			m.Evaluate(start)
			broken = true
			for i := range 10 {
				m.Evaluate(start.Add(time.Duration(i+1) * s))
			}
			require.Equal(t, 10.0, evaluations(m, "bad", kind))
			require.Equal(t, 1.0, evaluations(m, "bad", ""))
			require.Equal(t, 11.0, evaluations(m, "good", ""))
			require.Equal(t, alert.Firing, m.Alerts()[0].State, "an error is no data, which keeps the alert pending")
			require.Equal(t, alert.Firing, m.Alerts()[1].State)
			_, shown := metricsOf(m)[instrument.AlertValue.Name+"|bad|"]
			require.False(t, shown, "the metric has no value")
			broken = false
			m.Evaluate(start.Add(11 * s))
			require.Equal(t, 2.0, evaluations(m, "bad", ""))
		})
	}
}

func TestNaNAndInfinityCountAsMissingData(t *testing.T) {
	for metric, faults := range map[float64]float64{math.Inf(1): 1, math.Inf(-1): 1, math.NaN(): 0} {
		v := newValueReader(alert.Gauge(func() float64 { return metric }))
		v.requireNone(t, 0)
		require.Empty(t, v.monitor.Alerts())
		require.Equal(t, faults, evaluations(v.monitor, "seen", "not_finite"), "NaN is no error")
	}
}

func TestHangingRuleDoesNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var hanging atomic.Bool
		var reads atomic.Int64
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()},
			alert.Rule{Name: "bad", When: alert.Above(0), Value: alert.Gauge(func() float64 {
				reads.Add(1)
				if hanging.Load() {
					<-release
				}
				return 1
			})},
			alert.Rule{Name: "good", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 })})
		hanging.Store(true)
		began := time.Now()
		m.Evaluate(time.Now())
		require.InDelta(t, 1.1, time.Since(began).Seconds(), 0.01, "the budget and the grace")
		require.Equal(t, "good", m.Alerts()[0].Rule)
		began = time.Now()
		for range 100 {
			m.Evaluate(time.Now())
		}
		require.Zero(t, time.Since(began), "no wait for a rule that hangs already")
		require.EqualValues(t, 1, reads.Load(), "one goroutine hangs, not one per evaluation")
		require.Equal(t, 101.0, evaluations(m, "bad", "timeout"))
		require.Equal(t, 101.0, evaluations(m, "good", ""))

		hanging.Store(false)
		close(release)
		synctest.Wait()
		m.Evaluate(time.Now())
		require.Equal(t, 1.0, evaluations(m, "bad", ""))
		require.Equal(t, "bad", m.Alerts()[0].Rule)
	})
}

func TestDescribe(t *testing.T) {
	describe := func(a alert.Alert) string { return a.Rule + " is bad for " + a.Labels["team"] }
	m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
		Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 }),
		Labels: map[string]string{"team": "shop"}, Describe: func(a alert.Alert) string { return describe(a) },
	})
	m.Evaluate(time.Now())
	require.Equal(t, "x is bad for shop", m.Alerts()[0].Summary)
	describe = func(a alert.Alert) string { a.Labels["team"] = "changed"; panic("no words") }
	m.Evaluate(time.Now())
	require.Equal(t, "gauge is 1, alerts above 0", m.Alerts()[0].Summary)
	require.Equal(t, alert.Firing, m.Alerts()[0].State)
	require.Equal(t, "shop", m.Alerts()[0].Labels["team"], "the function gets a copy")
	require.Equal(t, 1.0, evaluations(m, "x", "panic"))
}

func TestRulesMayReadTheirMonitor(t *testing.T) {
	var m *alert.Monitor
	m = alert.NewMonitor(alert.Config{Logger: discardLogger()},
		alert.Rule{Name: "first", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 })},
		alert.Rule{Name: "second", When: alert.Above(0), Value: alert.Gauge(func() float64 {
			return float64(len(m.Alerts())) + metricsOf(m)[instrument.AlertState.Name+"|first||firing"]
		})},
		alert.Rule{Name: "third", When: alert.Above(0), Value: alert.Gauge(func() float64 { m.Evaluate(time.Now()); return 1 })})
	m.Evaluate(time.Now())
	require.Equal(t, 1.0, evaluations(m, "third", "panic"), "a rule may not evaluate its monitor")
	m.Evaluate(time.Now())
	require.Equal(t, 3.0, m.Alerts()[1].Value)
}

func TestConcurrentRunPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alert.NewMonitor(alert.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		synctest.Wait()
		require.PanicsWithValue(t, "alert: the monitor is evaluating already", func() { _ = m.Run(ctx) })
		require.PanicsWithValue(t, "alert: the monitor is evaluating already", func() { m.Evaluate(time.Now()) })
		cancel()
		synctest.Wait()
		require.NotPanics(t, func() { m.Evaluate(time.Now()) }, "evaluations may follow each other")
		again, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		m.Run(again)
	})
}

func TestRunEvaluatesAtOnceAndThenEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phases := map[time.Duration]bool{}
		for range 5 {
			var at []time.Duration
			began := time.Now()
			m := alert.NewMonitor(alert.Config{Interval: 10 * s}, alert.Rule{
				Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { at = append(at, time.Since(began)); return 0 }),
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			require.NoError(t, m.Run(ctx), "a canceled context is no error")
			cancel()
			require.InDelta(t, 7, len(at), 1)
			require.Zero(t, at[0])
			require.Less(t, at[1], 10*s)
			for i := 2; i < len(at); i++ {
				require.Equal(t, 10*s, at[i]-at[i-1])
			}
			require.Equal(t, time.Minute, time.Since(began), "Run ends with its context")
			phases[at[1]] = true
		}
		require.Greater(t, len(phases), 1, "monitors evaluate at different times")
	})
}

func TestCanceledRuleHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
			Name: "x", When: alert.Above(0), NoData: alert.Fire, Value: alert.Gauge(func() float64 { <-release; return 0 }),
		})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(s / 2)
		cancel()
		time.Sleep(s)
		require.Zero(t, evaluations(m, "x", "timeout"))
		require.Equal(t, 1.0, metricsOf(m)[instrument.AlertState.Name+"|x||inactive"])
		close(release)
		synctest.Wait()
	})
}

func TestSeriesAreTheSameEveryTime(t *testing.T) {
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{alert.Log(discardLogger())}},
		alert.Rule{Name: "x", Severity: "page", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 })})
	series := func() map[*stat.Series]bool {
		seen := map[*stat.Series]bool{}
		for s := range m.Observe {
			require.False(t, seen[s], "%s twice", s.ID())
			seen[s] = true
		}
		return seen
	}
	before := series()
	m.Evaluate(time.Now())
	after := series()
	for s := range before {
		require.True(t, after[s], s.ID())
	}
	require.Len(t, after, len(before)+2, "the value and the time of evaluation are new")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range m.Observe {
		}
	}))
}

// Alerts and Observe may be called at any time, and callers own the results.
func TestConcurrentReaders(t *testing.T) {
	mine := alert.Func("mine", func(_ context.Context, a alert.Alert) error { a.Labels["team"] = "mine"; return nil })
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{mine}}, alert.Rule{
		Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 }), Labels: map[string]string{"team": "shop"},
	})
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, a := range m.Alerts() {
					a.Labels["team"] = "mine"
				}
				for range m.Observe {
				}
			}
		})
	}
	start := time.Now()
	for i := range 500 {
		m.Evaluate(start.Add(time.Duration(i) * s))
		require.NoError(t, m.Flush(t.Context()))
	}
	close(stop)
	readers.Wait()
	require.Equal(t, "shop", m.Alerts()[0].Labels["team"])
}
