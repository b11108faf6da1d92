package promrules

import (
	"fmt"
	"math"
	"strings"
)

// pair is a burn rate and the two spans over which it has to be exceeded.
type pair struct {
	factor      float64
	long, short string
	severity    string
}

// BurnRate returns the rules for an objective of the breaker or gate of that name. slo is the share
// of calls that have to succeed, such as 0.999. Refused calls count as failed ones. Source: Site
// Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts".
//
// The rules page at 14.4 times the budget's even spending (over 1 h and 5 m) and at 6
// times (6 h, 30 m), and ask for a ticket at 3 times (1 d, 2 h) and at 1 time (3 d,
// 6 h). The error names a slo outside 0..1, and one so low that a factor could never
// be reached.
func BurnRate(breaker string, slo float64) ([]Rule, error) {
	if math.IsNaN(slo) || slo <= 0 || slo >= 1 {
		return nil, fmt.Errorf("promrules: slo is %v, must lie between 0 and 1", slo)
	}
	var rules []Rule
	for _, p := range []pair{
		{14.4, "1h", "5m", "page"}, {6, "6h", "30m", "page"}, {3, "1d", "2h", "ticket"}, {1, "3d", "6h", "ticket"},
	} {
		if most := 1 / (1 - slo); p.factor >= most {
			return nil, fmt.Errorf("promrules: slo is %v, with which a burn rate lies between 0 and %.6g and is never above %v", slo, most, p.factor)
		}
		rules = append(rules, p.rule(breaker, slo))
	}
	return rules, nil
}

func (p pair) rule(breaker string, slo float64) Rule {
	limit := fmt.Sprintf("%.6g", p.factor*(1-slo))
	return Rule{
		Alert: fmt.Sprintf("%s burn %gx", breaker, p.factor),
		Expr: fmt.Sprintf("(%s) > %s and (%s) > %s",
			errorRatio(breaker, p.long), limit, errorRatio(breaker, p.short), limit),
		Labels: map[string]string{"severity": p.severity},
		Annotations: map[string]string{
			"summary": fmt.Sprintf("%s spends its error budget more than %g times too fast, over %s and %s",
				literal(breaker), p.factor, p.long, p.short),
		},
	}
}

// errorRatio is the share of bad calls over all processes.
func errorRatio(breaker, span string) string {
	const calls = `sum(rate(weir_breaker_calls_total{weir_breaker_name="%s",weir_breaker_outcome=~"%s"}[%s]))`
	name := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(breaker)
	return fmt.Sprintf(calls+" / "+calls, name, "failure|refused", span, name, "success|failure|refused", span)
}

// literal keeps Prometheus from taking braces in an annotation for a template.
func literal(s string) string { return strings.ReplaceAll(s, "{{", `{{"{{"}}`) }
