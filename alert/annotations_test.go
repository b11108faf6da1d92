package alert_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// annotatedRule returns a firing rule with annotations.
func annotatedRule(annotations map[string]string) alert.Rule {
	return alert.Rule{
		Name: "x", When: alert.Above(0), Value: alert.Gauge(func() float64 { return 1 }), Annotations: annotations,
	}
}

func TestAnnotationsDoNotChangeTheID(t *testing.T) {
	var told alertRecorder
	given := map[string]string{"runbook": "https://runbooks.example/x", "description": "x is bad"}
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{told.notifier("x")}, Instance: "a"}, annotatedRule(given))
	m.Evaluate(time.Now())
	require.NoError(t, m.Flush(t.Context()))
	a := told.alerts()[0]
	require.Equal(t, given, a.Annotations)
	require.Equal(t, "gauge is 1, alerts above 0", a.Summary)
	require.Equal(t, map[string]string{"alertname": "x", "instance": "a"}, a.Labels)

	a.Annotations["runbook"] = "changed" // a notifier has its own copy of what it was given
	given["description"] = "changed"     // and a rule has its own copy of its parts
	require.Equal(t, map[string]string{"runbook": "https://runbooks.example/x", "description": "x is bad"}, m.Alerts()[0].Annotations)

	plain := alert.NewMonitor(alert.Config{Instance: "a"}, annotatedRule(nil))
	plain.Evaluate(time.Now())
	require.Equal(t, a.ID, plain.Alerts()[0].ID)
	require.Nil(t, plain.Alerts()[0].Annotations)
}

func TestSummaryComesFromDescribeOrAnnotation(t *testing.T) {
	summary := func(r alert.Rule) string {
		m := alert.NewMonitor(alert.Config{Logger: discardLogger()}, r)
		m.Evaluate(time.Now())
		return m.Alerts()[0].Summary
	}
	r := annotatedRule(map[string]string{"summary": "payments fail"})
	require.Equal(t, "payments fail", summary(r))
	r.Describe = func(a alert.Alert) string { return a.Summary + ", " + a.Annotations["summary"] + " indeed" }
	require.Equal(t, "payments fail, payments fail indeed", summary(r))
	r.Describe = func(alert.Alert) string { panic("no words") }
	require.Equal(t, "payments fail", summary(r))
}

func TestInvalidAnnotations(t *testing.T) {
	many := map[string]string{}
	for i := range 17 {
		many[fmt.Sprint("a", i)] = "x"
	}
	for want, annotations := range map[string]map[string]string{
		`Annotations has "value", which is set by the monitor`:                    {"value": "1"},
		`Annotations has "run book", must be up to 128 letters, digits`:           {"run book": "x"},
		`Annotations["runbook"] is "", must be UTF-8 and not empty`:               {"runbook": ""},
		`Annotations["runbook"] is "\xff", must be UTF-8 and not empty`:           {"runbook": "\xff"},
		`Annotations["description"] takes 4097 bytes, must take at most 4096`:     {"description": strings.Repeat("x", 4097)},
		`Annotations has 17 annotations, must have at most 16`:                    many,
		`Annotations has "` + strings.Repeat("x", 129) + `", must be up to 128 l`: {strings.Repeat("x", 129): "x"},
	} {
		require.ErrorContains(t, alert.Config{}.Validate(annotatedRule(annotations)), want)
	}
	delete(many, "a0")
	many["a1"] = strings.Repeat("x", 4096)
	require.NoError(t, alert.Config{}.Validate(annotatedRule(many)))
}

func TestLogWritesAnnotations(t *testing.T) {
	var lines []string
	logger := slog.New(slog.NewTextHandler(lineWriter(func(line string) { lines = append(lines, line) }), nil))
	a := alert.Alert{
		Rule: "x", State: alert.Firing, Summary: "x is bad", StartsAt: time.Now(),
		Annotations: map[string]string{"summary": "not shown twice", "runbook": "https://runbooks.example/x", "description": "d"},
	}
	require.NoError(t, alert.Log(logger).Notify(t.Context(), a))
	require.Contains(t, lines[0], ` weir.alert.annotations.description=d weir.alert.annotations.runbook=https://runbooks.example/x weir.alert.id=`)
	require.NotContains(t, lines[0], "twice")
	a.Annotations = map[string]string{"summary": "alone"}
	require.NoError(t, alert.Log(logger).Notify(t.Context(), a))
	require.NotContains(t, lines[1], "annotations")
}
