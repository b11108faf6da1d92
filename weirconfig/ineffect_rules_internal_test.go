package weirconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// monitorChanges are values of the fields of the monitor.
var monitorChanges = map[string]string{"interval": "7s", "budget": "3s", "timeout": "4s", "instance": "other"}

// ruleChanges are changes of each field of a rule.
var ruleChanges = map[string][2]string{
	"name":        {"RULE", "name: other, of: a, value: failure_rate, when: above 10%, span: 1m"},
	"of":          {"RULE", "name: r, of: b, value: failure_rate, when: above 10%, span: 1m"},
	"value":       {"RULE", "name: r, of: a, value: slow_rate, when: above 10%, span: 1m"},
	"when":        {"RULE", "name: r, of: a, value: failure_rate, when: above 90%, span: 1m"},
	"span":        {"RULE", "name: r, of: a, value: failure_rate, when: above 10%, span: 10s"},
	"resolve":     {"RULE", "RULE, resolve: below 5%"},
	"min_calls":   {"RULE", "RULE, min_calls: 50"},
	"min_bad":     {"RULE", "RULE, min_bad: 6"},
	"for":         {"RULE", "RULE, for: 17s"},
	"keep_firing": {"RULE", "RULE, keep_firing: 20s"},
	"no_data":     {"name: r, of: c, value: failure_rate, when: above 10%, span: 1m", "name: r, of: c, value: failure_rate, when: above 10%, span: 1m, no_data: resolve"},
	"severity":    {"RULE", "RULE, severity: page"},
	"labels":      {"RULE", "RULE, labels: {team: shop}"},
	"annotations": {"RULE", "RULE, annotations: {runbook: look}"},

	"quantile": {
		"name: r, of: a, value: quantile, quantile: 99%, when: above 50ms, span: 1m",
		"name: r, of: a, value: quantile, quantile: 10%, when: above 50ms, span: 1m",
	},
	"slo": {
		"name: r, of: a, value: burn_rate, slo: 90%, when: above 2, span: 1m",
		"name: r, of: a, value: burn_rate, slo: 95%, when: above 2, span: 1m",
	},
	"short_span": {
		"name: r, of: a, value: burn_rate, slo: 90%, when: above 1, span: 1m",
		"name: r, of: a, value: burn_rate, slo: 90%, when: above 1, span: 1m, short_span: 30s",
	},
}

// withRecorder adds a notifier that writes all alerts to the trace.
func withRecorder(trace *strings.Builder) Config {
	return Config{Notify: []alert.Notifier{alert.Func("recorder", func(_ context.Context, a alert.Alert) error {
		text, err := json.Marshal(a)
		fmt.Fprintln(trace, string(text), err)
		return nil
	})}}
}

// exerciseRule evaluates the rule while the services of three gates fail for some time, and then
// have no calls.
func exerciseRule(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	for second := range 250 {
		sleep(time.Second)
		for n, name := range []string{"a", "b", "c"} {
			if second >= 100 {
				break
			}
			_ = s.Gate(name).Run(t.Context(), func(context.Context) error {
				sleep(time.Duration(10+100*(second%5/4)) * time.Millisecond)
				if second > 20 && (second < 50 || name == "c") && second%3 <= n {
					return errors.New("down")
				}
				return nil
			})
		}
		if second%5 == 0 {
			s.Monitor().Evaluate(time.Now())
			require.NoError(t, s.Monitor().Flush(t.Context()))
		}
	}
	for series, value := range s.Monitor().Observe {
		if strings.HasPrefix(series.Instrument.Name, "weir.alert.") {
			fmt.Fprintln(trace, series.Instrument.Name, series.Values, value)
		}
	}
}

// withSlowRule returns a config with a slow rule and a notifier that runs until its timeout.
func withSlowRule(trace *strings.Builder) Config {
	var mu sync.Mutex
	var last time.Time
	evaluations := 0
	note := func(args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(trace, args...)
	}
	return Config{
		Logger: slog.New(slog.DiscardHandler),
		Notify: []alert.Notifier{alert.Func("recorder", func(ctx context.Context, a alert.Alert) error {
			began := time.Now()
			<-ctx.Done()
			note(a.Labels, time.Since(began))
			return nil
		})},
		Rules: []alert.Rule{
			{Name: "firing", When: alert.Above(0), Value: alert.Gauge(func() float64 {
				if evaluations++; evaluations == 3 { // the first interval is random
					note("evaluated every", time.Since(last).Round(time.Second))
				}
				last = time.Now()
				return 1
			})},
			{Name: "slow", When: alert.Below(0), Value: alert.Gauge(func() float64 {
				sleep(2 * time.Second)
				return 1
			})},
		},
	}
}

// exerciseMonitor runs the monitor, which begins at a random time within its interval.
func exerciseMonitor(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Monitor().Run(ctx) })
	sleep(40 * time.Second)
	cancel()
	running.Wait()
	sleep(3 * time.Second) // until the slow rule has ended
	for series, value := range s.Monitor().Observe {
		if series.Instrument.Name == "weir.alert.evaluations" && series.Values[0] == "slow" {
			fmt.Fprintln(trace, series.Values, value > 0)
		}
	}
	lines := slices.Sorted(strings.Lines(trace.String()))
	trace.Reset()
	trace.WriteString(strings.Join(lines, ""))
}

const ruleFile = `
gates:
  a: {breaker: {failure_rate: off, failure_run: off, latency: true, slow_call: 100ms, slow_rate: off}}
  b: {breaker: {failure_rate: off, failure_run: off}}
  c: {breaker: {failure_rate: off, failure_run: off}}
`

func TestEachChangeOfARuleIsInEffect(t *testing.T) {
	for _, key := range keysOf(reflect.TypeFor[rule](), "") {
		require.Contains(t, ruleChanges, key)
		c := change{key: key, config: withRecorder, exercise: exerciseRule}
		text := func(fields string) string {
			return ruleFile + "rules: [{" + strings.ReplaceAll(fields, "RULE", "name: r, of: a, value: failure_rate, when: above 10%, span: 1m") + "}]"
		}
		c.before, c.after = text(ruleChanges[key][0]), text(ruleChanges[key][1])
		c.requireInEffect(t)
	}
}

func TestEachChangeOfTheMonitorIsInEffect(t *testing.T) {
	const rules = ruleFile + "rules: [{name: r, of: a, value: failure_rate, when: above 10%, span: 1m}]\n"
	for _, key := range keysOf(reflect.TypeFor[alert.Config](), "") {
		if key == "state_file" {
			continue // needs a restart
		}
		require.Contains(t, monitorChanges, key)
		c := change{key: key, config: withSlowRule, exercise: exerciseMonitor}
		c.before = rules + "monitor: {instance: one}"
		c.after = rules + "monitor: {instance: one, " + key + ": " + monitorChanges[key] + "}"
		if key == "instance" {
			c.after = rules + "monitor: {instance: other}"
		}
		c.requireInEffect(t)
	}
}
