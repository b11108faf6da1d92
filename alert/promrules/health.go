package promrules

import (
	"fmt"
	"time"
)

// Health returns rules about the parts of weir themselves, for every breaker,
// limiter, notifier and monitor there is: breakers that stay open, flap or refuse,
// limiters that refuse much, notifiers that do not deliver, and monitors that have
// ceased to evaluate. The interval is the longest of a monitor.
func Health(interval time.Duration) Group {
	return Group{Name: "weir health", Rules: []Rule{
		{
			Alert: "BreakerOpen", For: time.Minute, KeepFiring: 5 * time.Minute,
			Expr:   `weir_breaker_state{weir_breaker_state="open"} > 0`,
			Labels: severity("page"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} has been open for a minute"),
		},
		{
			Alert:  "BreakerFlapping",
			Expr:   `increase(weir_breaker_transitions_total{weir_breaker_state="open"}[15m]) >= 3`,
			Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} has opened three times in 15 minutes"),
		},
		{
			Alert: "BreakerRejecting", For: 5 * time.Minute,
			Expr:   `sum by (weir_breaker_name) (rate(weir_breaker_calls_total{weir_breaker_outcome="refused"}[5m])) > 0`,
			Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} refuses {{ $value | humanize }} calls a second"),
		},
		{
			Alert: "LimiterSaturated", For: 10 * time.Minute,
			Expr: `sum by (weir_limiter_name) (rate(weir_limiter_requests_total{weir_limiter_outcome="refused"}[5m]))` +
				` / sum by (weir_limiter_name) (rate(weir_limiter_requests_total[5m])) > 0.1`,
			Labels: severity("ticket"), Annotations: summary("limiter {{ $labels.weir_limiter_name }} refuses {{ $value | humanizePercentage }} of its requests"),
		},
		{
			Alert: "NotifierFailing", For: 5 * time.Minute,
			Expr: `sum by (weir_notifier_name) (increase(weir_notifier_notifications_total{weir_notifier_outcome="failed"}[10m])) > 0` +
				` unless sum by (weir_notifier_name) (increase(weir_notifier_notifications_total{weir_notifier_outcome="delivered"}[10m])) > 0`,
			Labels: severity("page"), Annotations: summary("notifier {{ $labels.weir_notifier_name }} delivers nothing"),
		},
		{
			Alert:  "AlertEngineStalled",
			Expr:   fmt.Sprintf(`time() - weir_alert_last_evaluation_timestamp_seconds > %g`, 3*interval.Seconds()),
			Labels: severity("page"), Annotations: summary("rule {{ $labels.weir_alert_rule }} was last evaluated {{ $value | humanizeDuration }} ago"),
		},
	}}
}

func severity(s string) map[string]string { return map[string]string{"severity": s} }
func summary(s string) map[string]string  { return map[string]string{"summary": s} }
