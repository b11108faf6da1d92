package alert_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/window"
)

// config returns a config whose notifiers all record.
func (d *alertRecorder) config(names ...string) (c alert.Config) {
	c = alert.Config{Logger: discardLogger(), Instance: "-"}
	for _, name := range names {
		c.Notify = append(c.Notify, d.notifier(name))
	}
	return c
}

// gaugeRule returns a rule that is bad while *value is above 1.
func gaugeRule(name string, value *float64) alert.Rule {
	return alert.Rule{Name: name, Value: alert.Gauge(func() float64 { return *value }), When: alert.Above(1)}
}

func changedRule(r alert.Rule, change func(*alert.Rule)) alert.Rule {
	change(&r)
	return r
}

// A rule is evaluated twice, a minute apart, with another config from the second time on.
func TestAReplacedRuleContinuesWhereItWas(t *testing.T) {
	const m = time.Minute
	bad := 5.0
	rule := gaugeRule("r", &bad)
	for name, c := range map[string]struct {
		before, after []alert.Rule
		want          []string // what receivers hear at the second evaluation
		state         map[string]alert.State
	}{
		"the same":              {[]alert.Rule{rule}, []alert.Rule{rule}, nil, map[string]alert.State{"r": alert.Firing}},
		"a threshold not met":   {[]alert.Rule{rule}, []alert.Rule{changedRule(rule, func(r *alert.Rule) { r.When = alert.Above(9) })}, []string{"r resolved"}, map[string]alert.State{"r": alert.Resolved}},
		"another summary":       {[]alert.Rule{rule}, []alert.Rule{changedRule(rule, func(r *alert.Rule) { r.Annotations = map[string]string{"summary": "new"} })}, nil, map[string]alert.State{"r": alert.Firing}},
		"pending, For is over":  {[]alert.Rule{changedRule(rule, func(r *alert.Rule) { r.For = time.Hour })}, []alert.Rule{changedRule(rule, func(r *alert.Rule) { r.For = m })}, []string{"r firing"}, map[string]alert.State{"r": alert.Firing}},
		"pending, a longer For": {[]alert.Rule{changedRule(rule, func(r *alert.Rule) { r.For = m })}, []alert.Rule{changedRule(rule, func(r *alert.Rule) { r.For = 2 * m })}, nil, map[string]alert.State{"r": alert.Pending}},
		"gone":                  {[]alert.Rule{rule}, nil, []string{"r resolved"}, map[string]alert.State{"r": alert.Resolved}},
		"gone while pending":    {[]alert.Rule{changedRule(rule, func(r *alert.Rule) { r.For = time.Hour })}, nil, nil, map[string]alert.State{}},
		"new":                   {nil, []alert.Rule{rule}, []string{"r firing"}, map[string]alert.State{"r": alert.Firing}},
		"renamed":               {[]alert.Rule{rule}, []alert.Rule{gaugeRule("s", &bad)}, []string{"s firing", "r resolved"}, map[string]alert.State{"r": alert.Resolved, "s": alert.Firing}},
	} {
		t.Run(name, func(t *testing.T) {
			var heard alertRecorder
			monitor := alert.NewMonitor(heard.config("n"), c.before...)
			start := time.Now()
			monitor.Evaluate(start)
			require.NoError(t, monitor.Flush(t.Context()))
			before := len(heard.lines())
			require.NoError(t, monitor.Reconfigure(heard.config("n"), c.after...))
			monitor.Evaluate(start.Add(m))
			monitor.Evaluate(start.Add(m))
			require.NoError(t, monitor.Flush(t.Context()))
			require.ElementsMatch(t, c.want, heard.lines()[before:])
			states := map[string]alert.State{}
			for _, a := range monitor.Alerts() {
				states[a.Rule] = a.State
			}
			require.Equal(t, c.state, states)
		})
	}
}

// Severity, labels and the instance are part of the identity of an alert.
func TestAnAlertWithOtherLabelsReplacesTheEarlierOne(t *testing.T) {
	bad := 5.0
	rule := changedRule(gaugeRule("r", &bad), func(r *alert.Rule) { r.For = time.Minute })
	for name, change := range map[string]func(*alert.Config, *alert.Rule){
		"severity": func(_ *alert.Config, r *alert.Rule) { r.Severity = "page" },
		"label":    func(_ *alert.Config, r *alert.Rule) { r.Labels = map[string]string{"team": "a"} },
		"instance": func(c *alert.Config, _ *alert.Rule) { c.Instance = "web-1" },
	} {
		t.Run(name, func(t *testing.T) {
			var heard alertRecorder
			c, other := heard.config("n"), rule
			monitor := alert.NewMonitor(c, rule)
			start := time.Now()
			monitor.Evaluate(start)
			monitor.Evaluate(start.Add(time.Minute))
			require.NoError(t, monitor.Flush(t.Context()))
			change(&c, &other)
			require.NoError(t, monitor.Reconfigure(c, other))
			monitor.Evaluate(start.Add(time.Minute + time.Second))
			require.NoError(t, monitor.Flush(t.Context()))
			require.Equal(t, []string{"r firing", "r firing", "r resolved"}, heard.lines())
			told := heard.alerts()
			require.Equal(t, told[0].ID, told[2].ID, "the alert with the old labels resolves")
			require.Equal(t, told[0].Labels, told[2].Labels)
			require.NotEqual(t, told[0].ID, told[1].ID)
			require.True(t, told[0].StartsAt.Equal(told[1].StartsAt), "it does not wait for For again")

			require.NoError(t, monitor.Reconfigure(heard.config("n"), rule))
			require.NoError(t, monitor.Reconfigure(c, other))
			monitor.Evaluate(start.Add(2 * time.Minute))
			require.NoError(t, monitor.Flush(t.Context()))
			require.Len(t, heard.lines(), 3, "no evaluation has seen the labels in between")
			require.Len(t, monitor.Alerts(), 2)
			require.NoError(t, monitor.Reconfigure(heard.config("n")))
			monitor.Evaluate(start.Add(3 * time.Minute))
			require.NoError(t, monitor.Flush(t.Context()))
			require.Equal(t, "r resolved", heard.lines()[3])
		})
	}
}

func TestLabelsThatNoEvaluationHasSeenLeaveNothing(t *testing.T) {
	bad := 5.0
	var heard alertRecorder
	monitor := alert.NewMonitor(heard.config("n"), gaugeRule("r", &bad))
	start := time.Now()
	monitor.Evaluate(start)
	for i := range 50 {
		rule := changedRule(gaugeRule("r", &bad), func(r *alert.Rule) { r.Severity = fmt.Sprint(i) })
		require.NoError(t, monitor.Reconfigure(heard.config("n"), rule))
	}
	monitor.Evaluate(start)
	require.Len(t, monitor.Alerts(), 2)
}

func TestARuleThatComesBack(t *testing.T) {
	for name, evaluated := range map[string]bool{"before an evaluation": false, "after an evaluation": true} {
		t.Run(name, func(t *testing.T) {
			bad := 5.0
			rule := changedRule(gaugeRule("r", &bad), func(r *alert.Rule) { r.For = time.Minute })
			var heard alertRecorder
			monitor := alert.NewMonitor(heard.config("n"), rule)
			start := time.Now()
			monitor.Evaluate(start.Add(-time.Minute))
			flush := func(after time.Duration) {
				monitor.Evaluate(start.Add(after))
				require.NoError(t, monitor.Flush(t.Context()))
			}
			flush(0)
			require.NoError(t, monitor.Reconfigure(heard.config("n")))
			want := []string{"r firing"}
			if evaluated {
				flush(time.Second)
				want = append(want, "r resolved", "r firing")
			}
			require.NoError(t, monitor.Reconfigure(heard.config("n"), rule))
			flush(2 * time.Second)
			flush(2*time.Second + time.Minute) // For
			require.Equal(t, want, heard.lines())
			require.Len(t, monitor.Alerts(), 1)
			bad = 0
			flush(2 * time.Minute)
			require.Equal(t, append(want, "r resolved"), heard.lines())
		})
	}
}

// A resolved alert is reported for 15 minutes, also if its rule was removed.
func TestAlertsOfRemovedRulesAreForgotten(t *testing.T) {
	bad := 5.0
	var heard alertRecorder
	monitor := alert.NewMonitor(heard.config("n"), gaugeRule("r", &bad))
	start := time.Now()
	monitor.Evaluate(start)
	require.NoError(t, monitor.Reconfigure(heard.config("n")))
	monitor.Evaluate(start.Add(time.Minute))
	require.Equal(t, alert.Resolved, monitor.Alerts()[0].State)
	monitor.Evaluate(start.Add(16 * time.Minute))
	require.Len(t, monitor.Alerts(), 1)
	monitor.Evaluate(start.Add(16*time.Minute + 1))
	require.Empty(t, monitor.Alerts())
}

// Memory is bounded however often rules are renamed.
func TestAtMostAThousandAlertsOfRemovedRulesAreRemembered(t *testing.T) {
	members := map[string]int{}
	for i := range 700 {
		members[fmt.Sprint(i)] = i
	}
	rule := func(name string) alert.Rule {
		return alert.Rule{Name: name, When: alert.Above(1), Value: alert.Each(maps.All(members), func(int) alert.Value {
			return alert.Gauge(func() float64 { return 5 })
		})}
	}
	var heard alertRecorder
	monitor := alert.NewMonitor(heard.config("n"), rule("0"))
	start := time.Now()
	for i := range 5 {
		monitor.Evaluate(start.Add(time.Duration(i) * time.Second))
		require.NoError(t, monitor.Flush(t.Context()))
		require.NoError(t, monitor.Reconfigure(heard.config("n"), rule(fmt.Sprint(i+1))))
	}
	monitor.Evaluate(start.Add(time.Minute))
	require.NoError(t, monitor.Flush(t.Context()))
	require.Len(t, monitor.Alerts(), 700+1000)
	counts := map[string]int{}
	for _, line := range heard.lines() {
		counts[line]++
	}
	for i := range 5 {
		require.Equal(t, 700, counts[fmt.Sprintf("%d resolved", i)])
	}
}

// No incident stays open because many alerts of removed rules are resolved at once.
func TestAllAlertsOfRemovedRulesResolve(t *testing.T) {
	members := map[string]int{}
	for i := range 700 {
		members[fmt.Sprint(i)] = i
	}
	rule := func(name string) alert.Rule {
		return alert.Rule{Name: name, When: alert.Above(1), Value: alert.Each(maps.All(members), func(int) alert.Value {
			return alert.Gauge(func() float64 { return 5 })
		})}
	}
	var heard alertRecorder
	monitor := alert.NewMonitor(heard.config("n"), rule("a"), rule("b"))
	start := time.Now()
	monitor.Evaluate(start)
	require.NoError(t, monitor.Flush(t.Context()))
	require.NoError(t, monitor.Reconfigure(heard.config("n")))
	monitor.Evaluate(start.Add(time.Second))
	require.NoError(t, monitor.Flush(t.Context()))
	counts := map[string]int{}
	for _, line := range heard.lines() {
		counts[line]++
	}
	require.Equal(t, map[string]int{"a firing": 700, "b firing": 700, "a resolved": 700, "b resolved": 700}, counts)
	monitor.Evaluate(start.Add(2 * time.Second))
	require.Len(t, monitor.Alerts(), 1000, "then the latest 1,000 are remembered")
}

func TestReconfigureOfAMonitorRefuses(t *testing.T) {
	bad := 5.0
	var heard alertRecorder
	rule := gaugeRule("r", &bad)
	monitor := alert.NewMonitor(heard.config("n"), rule)
	for _, rules := range [][]alert.Rule{{rule, rule}, {{Name: "s"}}} {
		require.EqualError(t, monitor.Reconfigure(alert.Config{}, rules...), alert.Config{}.Validate(rules...).Error())
	}
	require.ErrorContains(t, monitor.Reconfigure(alert.Config{Interval: -1}), "Interval")
	monitor.Evaluate(time.Now())
	require.NoError(t, monitor.Flush(t.Context()))
	require.Equal(t, []string{"r firing"}, heard.lines())
}

var errOutage = errors.New("out")

// A notifier with the same name takes over the queue and the history of the previous one.
func TestAReplacedNotifierContinuesWithTheQueue(t *testing.T) { synctest.Test(t, replaceNotifier) }

func replaceNotifier(t *testing.T) {
	first, second := 5.0, 0.0
	rules := []alert.Rule{gaugeRule("a", &first), gaugeRule("b", &second)}
	var heard alertRecorder
	broken := false
	c := alert.Config{Logger: discardLogger(), Instance: "-", Notify: []alert.Notifier{alert.Func("n", func(_ context.Context, a alert.Alert) error {
		if broken {
			return &alert.DeliveryError{Refused: true, Err: errOutage}
		}
		heard.write(a)
		return nil
	})}}
	monitor := alert.NewMonitor(c, rules...)
	start := time.Now()
	monitor.Evaluate(start)
	require.NoError(t, monitor.Flush(t.Context()))
	broken, second = true, 5
	monitor.Evaluate(start.Add(time.Second))
	require.Error(t, monitor.Flush(t.Context()))
	require.Equal(t, []string{"a firing"}, heard.lines())

	var newcomer alertRecorder
	next := heard.config("n")
	next.Notify = append(next.Notify, newcomer.notifier("m"))
	require.NoError(t, monitor.Reconfigure(next, rules...))
	require.NoError(t, monitor.Test(t.Context(), "m"), "it is there without an evaluation")
	newcomer.told = nil
	monitor.Evaluate(start.Add(2 * time.Second))
	require.NoError(t, monitor.Flush(t.Context()))
	require.Equal(t, []string{"a firing", "b firing"}, heard.lines())
	require.ElementsMatch(t, []string{"a firing", "b firing"}, newcomer.lines(), "a new notifier is told of all that fires")

	require.NoError(t, monitor.Reconfigure(heard.config("n"), rules...))
	first = 0
	monitor.Evaluate(start.Add(3 * time.Second))
	require.NoError(t, monitor.Flush(t.Context()))
	require.Equal(t, []string{"a firing", "b firing", "a resolved"}, heard.lines())
	require.Len(t, newcomer.lines(), 2, "it is gone")
	require.EqualError(t, monitor.Test(t.Context(), "m"), `alert: the monitor has no notifier "m"`)
	for key := range metricsOf(monitor) {
		require.NotContains(t, key, "|m")
	}
}

// sliceSource is a source that Go cannot compare.
type sliceSource []window.Totals

func (s sliceSource) Totals() window.Totals { return s[0] }

func TestARuleWhoseSourceCannotBeComparedBeginsAnew(t *testing.T) {
	source, start := sliceSource{{}}, time.Now()
	rule := alert.Rule{Name: "r", Value: alert.FailureRate(source, time.Minute), When: alert.Above(0.5)}
	monitor := alert.NewMonitor(alert.Config{Logger: discardLogger()}, rule)
	monitor.Evaluate(start)
	source[0].Failures = 10
	require.NoError(t, monitor.Reconfigure(alert.Config{Logger: discardLogger()}, rule))
	monitor.Evaluate(start.Add(time.Second))
	require.Empty(t, monitor.Alerts())
}
