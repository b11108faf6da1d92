package main

import (
	"fmt"
	"math"
	"strings"
)

// burnRateRules returns the rules for a service level objective of the breaker or gate with the
// given name, in all processes of each job. slo is the share of calls that have to succeed, such as
// 0.999. Refused calls count as failed. Source: Site Reliability Workbook, chapter 5, "Multiwindow,
// Multi-Burn-Rate Alerts".
//
// Two rules page: if the error budget is spent 14.4 times too fast over 1h and 5m, or 6 times too
// fast over 6h and 30m. Two rules open a ticket: at 3 times over 1d and 2h, and at 1 time over 3d
// and 6h. burnRateRules returns an error if slo is not between 0 and 1, or so low that a burn rate
// of 14.4 cannot occur.
//
// The first two are the rules of alert.BurnRateRules, with the same names. They judge a job and not
// a process. If history is missing, they assume that there were no calls.
func burnRateRules(breaker string, slo float64) ([]rule, error) {
	if math.IsNaN(slo) || slo <= 0 || slo >= 1 {
		return nil, fmt.Errorf("the objective is %v, must lie between 0 and 1", slo)
	}
	var rules []rule
	for _, b := range []burnRate{
		{14.4, "1h", "5m", "page"}, {6, "6h", "30m", "page"}, {3, "1d", "2h", "ticket"}, {1, "3d", "6h", "ticket"},
	} {
		if highest := 1 / (1 - slo); b.factor >= highest {
			return nil, fmt.Errorf("the objective is %v, too low for a burn rate of %v: the highest is %.6g", slo, b.factor, highest)
		}
		rules = append(rules, b.rule(breaker, slo))
	}
	return rules, nil
}

// burnRate is a burn rate and the two spans over which it must be exceeded.
type burnRate struct {
	factor      float64
	long, short string
	severity    string
}

func (b burnRate) rule(breaker string, slo float64) rule {
	limit := fmt.Sprintf("%.6g", b.factor*(1-slo))
	return rule{
		Alert: fmt.Sprintf("%s burn %gx", breaker, b.factor),
		Expr: fmt.Sprintf("(%s) > %s and (%s) > %s",
			errorRatio(breaker, b.long), limit, errorRatio(breaker, b.short), limit),
		Labels: map[string]string{"severity": b.severity},
		Annotations: map[string]string{
			"summary": fmt.Sprintf("%s spends its error budget more than %g times too fast, over %s and %s",
				literal(breaker), b.factor, b.long, b.short),
		},
	}
}

// errorRatio returns the expression for the share of bad calls in all processes of a job.
func errorRatio(breaker, span string) string {
	const calls = `sum by (job) (rate(weir_breaker_calls_total{weir_breaker_name="%s",weir_breaker_outcome=~"%s"}[%s]))`
	name := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(breaker)
	return fmt.Sprintf(calls+" / "+calls, name, "failure|refused", span, name, "success|failure|refused", span)
}

// literal escapes braces for an annotation, where Prometheus would read them as a template.
func literal(s string) string { return strings.ReplaceAll(s, "{{", `{{"{{"}}`) }
