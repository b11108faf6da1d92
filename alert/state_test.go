package alert_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// ruleProbe is a rule with a value that a test sets.
type ruleProbe struct {
	monitor *alert.Monitor
	start   time.Time
	sample  alert.Sample
}

// stateStep is a sample, and the state that the alert has afterwards.
type stateStep struct {
	at   time.Duration
	see  alert.Sample
	want string
}

var aboveFive = alert.Above(5)

func newRuleProbe(r alert.Rule) *ruleProbe {
	p := &ruleProbe{start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	r.Name, r.Value = "probe", alert.Custom(func(time.Time) alert.Sample { return p.sample })
	p.monitor = alert.NewMonitor(alert.Config{Logger: discardLogger()}, r)
	return p
}

// at evaluates a sample and returns the state of the alert.
func (p *ruleProbe) at(d time.Duration, s alert.Sample) string {
	p.sample = s
	p.monitor.Evaluate(p.start.Add(d))
	if alerts := p.monitor.Alerts(); len(alerts) > 0 {
		return string(alerts[0].State)
	}
	return "inactive"
}

func sampleOf(value float64) alert.Sample {
	return alert.Sample{Value: value, Calls: 100, Bad: 100, OK: true}
}

var noSample = alert.Sample{}

const s = time.Second

// stateCases are rules, and samples with the state that an alert has after each.
var stateCases = map[string]struct {
	rule  alert.Rule
	steps []stateStep
}{
	"without For it fires at once": {alert.Rule{When: aboveFive}, []stateStep{
		{0, sampleOf(5), "inactive"}, {1 * s, sampleOf(5.1), "firing"}, {2 * s, sampleOf(5), "resolved"},
	}},
	"For is counted from the first bad sample": {alert.Rule{When: aboveFive, For: 10 * s}, []stateStep{
		{0, sampleOf(6), "pending"}, {9 * s, sampleOf(6), "pending"}, {10 * s, sampleOf(6), "firing"},
	}},
	"one good sample while pending starts For again": {alert.Rule{When: aboveFive, For: 10 * s}, []stateStep{
		{0, sampleOf(6), "pending"}, {9 * s, sampleOf(5), "inactive"}, {10 * s, sampleOf(6), "pending"}, {19 * s, sampleOf(6), "pending"}, {20 * s, sampleOf(6), "firing"},
	}},
	"KeepFiring is counted from the first good sample": {alert.Rule{When: aboveFive, KeepFiring: 10 * s}, []stateStep{
		{0, sampleOf(6), "firing"}, {5 * s, sampleOf(1), "firing"}, {14 * s, sampleOf(1), "firing"}, {15 * s, sampleOf(1), "resolved"},
	}},
	"a bad sample starts KeepFiring again": {alert.Rule{When: aboveFive, KeepFiring: 10 * s}, []stateStep{
		{0, sampleOf(6), "firing"}, {5 * s, sampleOf(1), "firing"}, {14 * s, sampleOf(6), "firing"}, {15 * s, sampleOf(1), "firing"}, {24 * s, sampleOf(1), "firing"}, {25 * s, sampleOf(1), "resolved"},
	}},
	"a resolved alert is kept for 15 minutes": {alert.Rule{When: aboveFive}, []stateStep{
		{0, sampleOf(6), "firing"}, {1 * s, sampleOf(1), "resolved"}, {901 * s, sampleOf(1), "resolved"}, {902 * s, sampleOf(1), "inactive"},
	}},
	"a resolved alert may begin again": {alert.Rule{When: aboveFive, For: 10 * s}, []stateStep{
		{0, sampleOf(6), "pending"}, {10 * s, sampleOf(6), "firing"}, {11 * s, sampleOf(1), "resolved"}, {12 * s, sampleOf(6), "pending"}, {22 * s, sampleOf(6), "firing"},
	}},
	"below": {alert.Rule{When: alert.Below(5)}, []stateStep{
		{0, sampleOf(5), "inactive"}, {1 * s, sampleOf(4.9), "firing"}, {2 * s, sampleOf(5), "resolved"},
	}},
	"Resolve is another threshold": {alert.Rule{When: aboveFive, Resolve: alert.Below(2)}, []stateStep{
		{0, sampleOf(3), "inactive"}, {1 * s, sampleOf(6), "firing"}, {2 * s, sampleOf(3), "firing"}, {3 * s, sampleOf(2), "firing"}, {4 * s, sampleOf(1), "resolved"}, {5 * s, sampleOf(3), "resolved"},
	}},
	"Resolve does not matter while pending": {alert.Rule{When: aboveFive, Resolve: alert.Below(2), For: 10 * s}, []stateStep{
		{0, sampleOf(6), "pending"}, {5 * s, sampleOf(3), "inactive"},
	}},
	"no data keeps a pending rule ageing": {alert.Rule{When: aboveFive, For: 10 * s}, []stateStep{
		{0, noSample, "inactive"}, {1 * s, sampleOf(6), "pending"}, {5 * s, noSample, "pending"}, {11 * s, noSample, "firing"}, {12 * s, sampleOf(1), "resolved"},
	}},
	"no data keeps a rule that is easing off on its way": {alert.Rule{When: aboveFive, KeepFiring: 10 * s}, []stateStep{
		{0, sampleOf(6), "firing"}, {1 * s, sampleOf(1), "firing"}, {11 * s, noSample, "resolved"},
	}},
	"no data resolves": {alert.Rule{When: aboveFive, NoData: alert.Resolve}, []stateStep{
		{0, sampleOf(6), "firing"}, {1 * s, noSample, "resolved"},
	}},
	"no data fires": {alert.Rule{When: aboveFive, NoData: alert.Fire, For: 10 * s}, []stateStep{
		{0, noSample, "pending"}, {10 * s, noSample, "firing"}, {11 * s, sampleOf(1), "resolved"},
	}},
	"fewer calls than MinCalls are no data": {alert.Rule{When: aboveFive, MinCalls: 20}, []stateStep{
		{0, alert.Sample{Value: 9, Calls: 19, OK: true}, "inactive"},
		{1 * s, alert.Sample{Value: 9, Calls: 20, OK: true}, "firing"},
		{2 * s, alert.Sample{Value: 1, Calls: 19, OK: true}, "firing"},
		{3 * s, alert.Sample{Value: 1, Calls: 20, OK: true}, "resolved"},
	}},
	"fewer bad calls than MinBad are good": {alert.Rule{When: aboveFive, MinBad: 5}, []stateStep{
		{0, alert.Sample{Value: 9, Bad: 4, OK: true}, "inactive"}, {1 * s, alert.Sample{Value: 9, Bad: 5, OK: true}, "firing"}, {2 * s, alert.Sample{Value: 9, Bad: 4, OK: true}, "resolved"},
	}},
	"a time that goes back changes nothing": {alert.Rule{When: aboveFive, For: 10 * s}, []stateStep{
		{0, sampleOf(6), "pending"}, {-3600 * s, sampleOf(6), "pending"}, {9 * s, sampleOf(6), "pending"}, {10 * s, sampleOf(6), "firing"}, {-3600 * s, sampleOf(6), "firing"},
	}},
}

func TestStates(t *testing.T) {
	for name, test := range stateCases {
		t.Run(name, func(t *testing.T) {
			p := newRuleProbe(test.rule)
			for _, step := range test.steps {
				require.Equal(t, step.want, p.at(step.at, step.see), "at %v, with %+v", step.at, step.see)
			}
		})
	}
}

func TestTimesOfAnAlert(t *testing.T) {
	p := newRuleProbe(alert.Rule{When: alert.Above(5), For: 10 * s, KeepFiring: 5 * s})
	p.at(3*s, sampleOf(6))
	pending := p.monitor.Alerts()[0]
	require.Equal(t, p.start.Add(3*s), pending.ActiveAt)
	require.Zero(t, pending.StartsAt)

	p.at(13*s, sampleOf(7))
	firing := p.monitor.Alerts()[0]
	require.Equal(t, p.start.Add(13*s), firing.StartsAt)
	require.Zero(t, firing.EndsAt)
	require.Equal(t, "value is 7, alerts above 5", firing.Summary)

	p.at(14*s, sampleOf(1))
	p.at(20*s, noSample)
	resolved := p.monitor.Alerts()[0]
	require.Equal(t, alert.Resolved, resolved.State)
	require.Equal(t, p.start.Add(3*s), resolved.ActiveAt)
	require.Equal(t, p.start.Add(13*s), resolved.StartsAt)
	require.Equal(t, p.start.Add(20*s), resolved.EndsAt)
	require.Equal(t, 1.0, resolved.Value, "the latest value with data")
	require.Equal(t, firing.ID, resolved.ID)
}

func TestAlertDoesNotEndBeforeItStarts(t *testing.T) {
	p := newRuleProbe(alert.Rule{When: alert.Above(5)})
	p.at(0, sampleOf(6))
	p.at(-time.Hour, sampleOf(1))
	require.Equal(t, p.start, p.monitor.Alerts()[0].EndsAt)
	require.Equal(t, "resolved", p.at(15*time.Minute, sampleOf(1)))
	require.Equal(t, "inactive", p.at(15*time.Minute+s, sampleOf(1)))
}

// stateModel is a simple implementation of the states: it keeps all verdicts and computes the state
// each time from the first verdict on.
type stateModel struct {
	rule  alert.Rule
	times []time.Duration
	bad   []bool
}

func (m *stateModel) observe(at time.Duration, sample alert.Sample) string {
	state := m.state()
	m.times, m.bad = append(m.times, at), append(m.bad, m.verdict(state, sample))
	return m.state()
}

func (m *stateModel) verdict(state string, sample alert.Sample) bool {
	if !sample.OK || sample.Calls < m.rule.MinCalls {
		last := len(m.bad) > 0 && m.bad[len(m.bad)-1]
		return map[alert.NoData]bool{"": last, alert.KeepLast: last, alert.Resolve: false, alert.Fire: true}[m.rule.NoData]
	}
	if state == "firing" && m.rule.Resolve != (alert.Condition{}) {
		return !m.rule.Resolve.Holds(sample.Value)
	}
	return m.rule.When.Holds(sample.Value) && sample.Bad >= m.rule.MinBad
}

// state computes the state from the runs of equal verdicts.
func (m *stateModel) state() string {
	state, resolvedAt := "inactive", time.Duration(0)
	for i := 0; i < len(m.bad); {
		end := i
		for end < len(m.bad) && m.bad[end] == m.bad[i] {
			end++
		}
		for j := i; j < end; j++ {
			lasted := m.times[j] - m.times[i]
			switch {
			case m.bad[i] && state != "firing":
				state = "pending"
				if lasted >= m.rule.For {
					state = "firing"
				}
			case !m.bad[i] && state == "firing" && lasted >= m.rule.KeepFiring:
				state, resolvedAt = "resolved", m.times[j]
			case !m.bad[i] && (state == "pending" || state == "resolved" && m.times[j]-resolvedAt > 15*time.Minute):
				state = "inactive"
			}
		}
		i = end
	}
	return state
}

func TestStatesEqualASimpleModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	met := map[string]int{}
	for range 500 {
		rule := alert.Rule{
			When: alert.Above(5), NoData: []alert.NoData{"", alert.KeepLast, alert.Resolve, alert.Fire}[random.IntN(4)], MinCalls: random.Int64N(3), MinBad: random.Int64N(3),
			For: time.Duration(random.IntN(4)*30) * s, KeepFiring: time.Duration(random.IntN(4)*30) * s,
		}
		if random.IntN(2) == 0 {
			if threshold := random.IntN(6); threshold > 0 {
				rule.Resolve = alert.Below(float64(threshold))
			}
		}
		p, m := newRuleProbe(rule), &stateModel{rule: rule}
		var at time.Duration
		for range 60 {
			at += time.Duration(1+random.IntN(60)) * s
			if random.IntN(20) == 0 {
				at += 16 * time.Minute
			}
			sample := alert.Sample{Value: random.Float64() * 10, Calls: random.Int64N(6), Bad: random.Int64N(6), OK: random.IntN(5) > 0}
			want := m.observe(at, sample)
			met[want]++
			require.Equal(t, want, p.at(at, sample), "at %v with %+v, %+v", at, sample, rule)
		}
	}
	for _, state := range []string{"inactive", "pending", "firing", "resolved"} {
		require.Greater(t, met[state], 1000, "evaluations that found %s", state)
	}
}
