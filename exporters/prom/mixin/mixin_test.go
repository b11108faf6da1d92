package mixin_test

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

var update = flag.Bool("update", false, "rewrite alerts.yml")

// rulesCommand is the import path of the program that writes alerts.yml.
const rulesCommand = "github.com/weir-go/weir/cmd/weir-rules"

// outputOf returns what the command writes.
func outputOf(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"run", rulesCommand}, args...)...).Output()
	require.NoError(t, err)
	return string(out)
}

// rule is what the tests read of a rule.
type rule struct{ name, expr string }

var rulePattern = regexp.MustCompile(`(?m)^  - alert: "(\w+)"\n    expr: (".*")$`)

// healthRules returns the rules for the default intervals.
func healthRules(t *testing.T) (rules []rule) {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	for _, found := range rulePattern.FindAllStringSubmatch(string(text), -1) {
		r := rule{name: found[1]}
		require.NoError(t, json.Unmarshal([]byte(found[2]), &r.expr))
		rules = append(rules, r)
	}
	require.Len(t, rules, strings.Count(string(text), "alert:"))
	require.NotEmpty(t, rules)
	return rules
}

func TestRulesAreUpToDate(t *testing.T) {
	want := outputOf(t)
	if *update {
		require.NoError(t, os.WriteFile("alerts.yml", []byte(want), 0o644))
	}
	got, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./mixin -update")
}

func TestRulesPassPromtool(t *testing.T) {
	runPromtool(t, "check", "rules", "--lint=all", "--lint-fatal", "alerts.yml")
	runPromtool(t, "test", "rules", "alerts_test.yml")
}

func TestEveryRuleHasATest(t *testing.T) {
	tests, err := os.ReadFile("alerts_test.yml")
	require.NoError(t, err)
	for _, r := range healthRules(t) {
		require.Contains(t, string(tests), "alertname: "+r.name+"\n")
	}
}

// runPromtool runs Prometheus' checker.
func runPromtool(t *testing.T, args ...string) {
	t.Helper()
	path := testenv.Program(t, "promtool")
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, "promtool %s\n%.3000s", strings.Join(args, " "), out)
}

// dashboard is the part of Grafana's model that the tests read.
type dashboard struct {
	Panels      []panel
	Annotations struct{ List []target }
	Templating  struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []target
}

type target struct{ Expr, RefID string }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// expressions returns every expression of the dashboard.
func (d *dashboard) expressions() (list []string) {
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			list = append(list, t.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		list = append(list, a.Expr)
	}
	return list
}

// asGrafanaSends returns the expression with Grafana's variables replaced.
func asGrafanaSends(expr string) string {
	return strings.NewReplacer("$job", "shop", "$breaker", "a|b", "$key", ".*", "$limiter", ".*", "$__rate_interval", "1m0s").Replace(expr)
}

func TestDashboardExpressionsPassPromtool(t *testing.T) {
	d := readDashboard(t)
	type panelRule struct {
		Alert string `json:"alert"`
		Expr  string `json:"expr"`
	}
	var rules []panelRule
	for _, expr := range d.expressions() {
		require.NotContains(t, asGrafanaSends(expr), "$", "no other variables")
		rules = append(rules, panelRule{"Panel", asGrafanaSends(expr)})
	}
	require.Greater(t, len(rules), 40)
	groups := []map[string]any{{"name": "dashboard", "rules": rules}}
	text, err := json.Marshal(map[string]any{"groups": groups}) // also YAML
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	runPromtool(t, "check", "rules", "--lint=none", file)
}

func TestRulesAndDashboardUseExistingMetrics(t *testing.T) {
	known := exportedMetrics(t)
	d := readDashboard(t)
	exprs := d.expressions()
	for _, r := range healthRules(t) {
		exprs = append(exprs, r.expr)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			exprs = append(exprs, v.Definition)
		}
	}
	for _, expr := range exprs {
		known.check(t, expr)
	}
}

// nameLabels are the labels that tell the objects of a process apart, by the prefix of their
// metrics.
var nameLabels = map[string]string{
	"weir_breaker_": "weir_breaker_name", "weir_limiter_": "weir_limiter_name", "weir_inflight_": "weir_limiter_name",
	"weir_gate_": "weir_limiter_name", "weir_alert_": "weir_alert_rule", "weir_notifier_": "weir_notifier_name",
}

// Two processes may have objects with the same names, so each sum and each maximum is of one
// object of one process. Only the number of open breakers is of all.
func TestPanelsAndRulesTellProcessesApart(t *testing.T) {
	d := readDashboard(t)
	exprs := d.expressions()
	for _, r := range healthRules(t) {
		exprs = append(exprs, r.expr)
	}
	aggregations, totals := 0, 0
	for _, expr := range exprs {
		for _, one := range aggregationPattern.FindAllStringSubmatch(expr, -1) {
			aggregations++
			labels, identity := strings.Split(one[2], ", "), []string{"job", "instance"}
			for prefix, label := range nameLabels {
				if strings.Contains(expr, prefix) {
					identity = append(identity, label)
				}
			}
			switch one[1] {
			case "by":
				require.Subset(t, labels, identity, expr)
			case "without":
				for _, label := range identity {
					require.NotContains(t, labels, label, expr)
				}
			default:
				require.Contains(t, expr, "or vector(0)", "a total")
				totals++
			}
		}
	}
	require.Greater(t, aggregations, 50)
	require.Equal(t, 1, totals)
}

func TestPanelsDoNotOverlap(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		require.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		require.NotEmpty(t, p.Title)
		if p.Type != "row" {
			require.NotEmpty(t, p.Description, p.Title)
			require.NotEmpty(t, p.Targets, p.Title)
		}
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], "%s overlaps another panel", p.Title)
				taken[at] = p.Title
			}
		}
	}
}

// metrics holds the labels of each metric, and the known values of each label.
type metrics map[string]map[string][]string

// exportedMetrics returns the metrics of a program that uses everything, and the remaining
// instruments without label values.
func exportedMetrics(t *testing.T) metrics {
	t.Helper()
	down := breaker.New("down", breaker.Config{Latency: true, SlowCall: time.Second, MinCalls: 1})
	down.OpenFor(time.Second)
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{alert.Log(slog.New(slog.DiscardHandler))}},
		alert.Rule{Name: "down", Value: alert.Bool(down.Tripped), When: alert.Above(0)})
	monitor.Evaluate(time.Now())
	known := metrics{}
	known.add(t, weir.New("payments", weir.Config{Rate: limiter.PerSecond(1)}), down, monitor, breaker.NewGroup[string]("hosts", breaker.GroupConfig{}))
	known.add(t, allInstruments{})
	return known
}

// allInstruments is a source with one series per instrument, without label values.
type allInstruments struct{}

func (allInstruments) Observe(yield func(*stat.Series, float64) bool) {
	set, err := read.New(func(*stat.Series) int { return 0 })
	if err != nil {
		panic(err)
	}
	for _, i := range set.Instruments() {
		if i.Kind != stat.Distribution && !strings.HasPrefix(i.Name, "weir.exporter.") {
			if !yield(i.Series(make([]string, len(i.Attrs))...), 1) {
				return
			}
		}
	}
}

func (m metrics) add(t *testing.T, sources ...stat.Source) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(prom.NewCollector(sources...)))
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		names := []string{f.GetName()}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			names = append(names, f.GetName()+"_bucket", f.GetName()+"_sum", f.GetName()+"_count")
		}
		for _, name := range names {
			if m[name] == nil {
				m[name] = map[string][]string{"job": nil, "instance": nil, "le": nil}
			}
			for _, one := range f.Metric {
				for _, l := range one.Label {
					m[name][l.GetName()] = append(m[name][l.GetName()], l.GetValue())
				}
			}
		}
	}
}

var (
	labelValuesPattern = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	aggregationPattern = regexp.MustCompile(`\b(?:sum|min|max|avg|count|topk)\b ?(?:(by|without) \(([^)]*)\))?`)
	groupingPattern    = regexp.MustCompile(`\b(?:by|without|on) \(([^)]*)\)`)
	selectorPattern    = regexp.MustCompile(`(weir_\w+)(?:\{([^}]*)\})?`)
	matcherPattern     = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
)

// check checks that every metric, label and label value in the expression exists. It ignores the
// values of names, which are the user's.
func (m metrics) check(t *testing.T, expr string) {
	t.Helper()
	var groups []string
	if q := labelValuesPattern.FindStringSubmatch(expr); q != nil {
		expr, groups = q[1], []string{q[2]}
	}
	for _, g := range groupingPattern.FindAllStringSubmatch(expr, -1) {
		groups = append(groups, strings.Split(g[1], ", ")...)
	}
	selectors := selectorPattern.FindAllStringSubmatch(groupingPattern.ReplaceAllString(expr, ""), -1)
	require.NotEmpty(t, selectors, expr)
	for _, g := range groups {
		require.True(t, slices.ContainsFunc(selectors, func(s []string) bool {
			_, has := m[s[1]][g]
			return has
		}), "%s is no label in %s", g, expr)
	}
	for _, s := range selectors {
		require.Contains(t, m, s[1], expr)
		for _, one := range matcherPattern.FindAllStringSubmatch(s[2], -1) {
			require.Contains(t, m[s[1]], one[1], "matched in %s", expr)
			if !strings.HasPrefix(one[3], "$") {
				require.Subset(t, m[s[1]][one[1]], strings.Split(one[3], "|"), "of %s in %s", one[1], expr)
			}
		}
	}
}
