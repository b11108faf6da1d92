package mixin_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fields of Grafana's published schema that the dashboard uses: grafana/grafana,
// kinds/dashboard/dashboard_kind.cue. A field that is not listed here, or has a different type, is
// an error. Options of a panel and a query of a data source are open in that schema too.
type (
	grafanaDashboard struct {
		UID, Title, Description, Refresh, Timezone string
		Tags                                       []string
		SchemaVersion                              uint16
		Version                                    uint32
		Editable                                   bool
		GraphTooltip                               uint8
		Time                                       struct{ From, To string }
		Links                                      []any
		Panels                                     []grafanaPanel
		Templating                                 struct{ List []grafanaVariable }
		Annotations                                struct{ List []grafanaAnnotation }
	}
	grafanaPanel struct {
		ID                       uint32
		Type, Title, Description string
		GridPos                  struct{ H, W, X, Y uint32 }
		Collapsed                bool
		Panels                   []any
		Datasource               grafanaSource
		FieldConfig              struct {
			Defaults struct {
				Unit       string
				Min, Max   *float64
				Decimals   *float64
				Custom     map[string]any
				Mappings   []grafanaMapping
				Thresholds *struct {
					Mode  string
					Steps []struct {
						Color string
						Value *float64
					}
				}
			}
			Overrides []any
		}
		Options         map[string]any
		Transformations []struct {
			ID      string
			Options map[string]any
		}
		Targets []grafanaQuery
	}
	grafanaMapping struct {
		Type    string
		Options map[string]struct {
			Text, Color string
			Index       int32
		}
	}
	grafanaQuery struct {
		RefID, Expr, LegendFormat, Format string
		Instant, Range                    bool
		Datasource                        *grafanaSource
	}
	grafanaSource   struct{ Type, UID string }
	grafanaVariable struct {
		Name, Label, Type, Definition, AllValue string
		Query                                   any
		Datasource                              *grafanaSource
		Refresh, Sort                           int
		Multi, IncludeAll                       bool
		Current                                 struct{ Text, Value string }
	}
	grafanaAnnotation struct {
		Name, IconColor, Expr, TitleFormat, Step string
		Enable                                   bool
		Datasource                               grafanaSource
	}
)

func readGrafana(t *testing.T) (d grafanaDashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&d))
	return d
}

func TestDashboardFollowsGrafanasSchema(t *testing.T) {
	d := readGrafana(t)
	require.GreaterOrEqual(t, d.SchemaVersion, uint16(36))
	require.LessOrEqual(t, d.GraphTooltip, uint8(2))
	require.LessOrEqual(t, len(d.UID), 40)
	source := grafanaSource{Type: "prometheus", UID: "${datasource}"}
	for _, p := range d.Panels {
		require.Contains(t, []string{"row", "stat", "state-timeline", "timeseries", "table"}, p.Type, p.Title)
		require.NotZero(t, p.GridPos.H, p.Title)
		require.True(t, p.GridPos.W > 0 && p.GridPos.W <= 24 && p.GridPos.X < 24, p.Title)
		if p.Type == "row" {
			continue
		}
		require.Equal(t, source, p.Datasource, p.Title)
		require.Contains(t, []string{"none", "s", "percentunit", "reqps", "cps"}, p.FieldConfig.Defaults.Unit, p.Title)
		for _, m := range p.FieldConfig.Defaults.Mappings {
			require.Equal(t, "value", m.Type, p.Title)
			require.NotEmpty(t, m.Options, p.Title)
		}
		if limits := p.FieldConfig.Defaults.Thresholds; limits != nil {
			require.Contains(t, []string{"absolute", "percentage"}, limits.Mode)
			require.Nil(t, limits.Steps[0].Value, "the first step is -Inf")
		}
		seen := map[string]bool{}
		for _, q := range p.Targets {
			require.NotEmpty(t, q.RefID, p.Title)
			require.False(t, seen[q.RefID], "%s has two queries %s", p.Title, q.RefID)
			seen[q.RefID] = true
		}
	}
	for _, v := range d.Templating.List {
		require.Contains(t, []string{"query", "datasource"}, v.Type, v.Name)
		require.True(t, v.Type == "datasource" || *v.Datasource == source, v.Name)
	}
	for _, a := range d.Annotations.List {
		require.Equal(t, source, a.Datasource)
		require.NotEmpty(t, a.IconColor)
	}
}

var (
	metricNamePattern = regexp.MustCompile(`weir_\w+`)
	labelsPattern     = regexp.MustCompile(`\{[^}]*\}|\b(?:by|without) \([^)]*\)`)
)

// unitOf returns Grafana's unit of an expression of the dashboard.
func unitOf(expr string) string {
	expr = labelsPattern.ReplaceAllString(expr, "")
	name := metricNamePattern.FindString(expr)
	timed := strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_total"), "_seconds")
	switch {
	case strings.HasPrefix(expr, "histogram_quantile("):
		return "s"
	case strings.Contains(expr, "_seconds_sum") && strings.Contains(expr, " / "):
		return "s"
	case strings.Contains(expr, " / ") || strings.HasSuffix(name, "_ratio"):
		return "percentunit"
	case strings.Contains(expr, "rate(") && timed: // seconds per second
		return "percentunit"
	case strings.Contains(expr, "rate("):
		return "per second"
	case timed:
		return "s"
	}
	return "none"
}

func TestNoAxisMixesUnits(t *testing.T) {
	for _, p := range readGrafana(t).Panels {
		want := p.FieldConfig.Defaults.Unit
		if want == "reqps" || want == "cps" {
			want = "per second"
		}
		for _, q := range p.Targets {
			if p.Type != "table" {
				require.Equal(t, want, unitOf(q.Expr), "%s: %s", p.Title, q.Expr)
			}
		}
	}
}

// The series of a group's members have different labels, and the variable chooses among them.
func TestSeriesOfBreakersCarryTheirKey(t *testing.T) {
	known := exportedMetrics(t)
	d := readGrafana(t)
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			if _, keyed := known[metricNamePattern.FindString(q.Expr[strings.LastIndex(q.Expr[:strings.IndexByte(q.Expr, '{')], "weir_"):])]["weir_group_key"]; !keyed {
				continue
			}
			require.Contains(t, q.Expr, `weir_group_key=~"$key"`, p.Title)
			require.Equal(t, strings.Contains(q.LegendFormat, "{{weir_breaker_name}}"), strings.Contains(q.LegendFormat, "{{weir_group_key}}"), p.Title)
		}
	}
	require.Contains(t, d.Annotations.List[0].TitleFormat, "{{weir_group_key}}")
	require.Contains(t, d.Annotations.List[0].Expr, `weir_group_key=~"$key"`)
}

// A call that a full group does not guard counts as a forced-closed breaker of the key _other,
// which would show as an override forever.
func TestTheTimelineShowsNoOverrideForMembersOfAGroup(t *testing.T) {
	for _, p := range readGrafana(t).Panels {
		if p.Type != "state-timeline" {
			continue
		}
		single, members, found := strings.Cut(p.Targets[0].Expr, " or max by ")
		require.True(t, found)
		require.Contains(t, single, `weir_group_key=""`)
		require.Contains(t, single, "forced_closed")
		require.Contains(t, members, `weir_group_key!=""`)
		require.NotContains(t, members, "forced_closed")
		require.Contains(t, members, "recovering")
	}
}
