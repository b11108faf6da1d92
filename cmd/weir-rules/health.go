package main

import (
	"errors"
	"fmt"
	"time"
)

// intervals are the intervals that the rules are made for.
type intervals struct {
	evaluation time.Duration // the longest alert.Config.Interval of the programs
	scrape     time.Duration // how often Prometheus scrapes the programs
}

const (
	maxInterval = time.Hour
	minScrape   = time.Millisecond
	maxScrape   = 2 * time.Minute // Prometheus considers a series stale after 5 minutes
)

// validate returns an error that names every invalid interval, or nil.
func (c intervals) validate() error {
	var errs []error
	if c.evaluation <= 0 || c.evaluation > maxInterval {
		errs = append(errs, fmt.Errorf("weir-rules: -interval is %v, must be positive and at most %v", c.evaluation, maxInterval))
	}
	if c.scrape < minScrape || c.scrape > maxScrape {
		errs = append(errs, fmt.Errorf("weir-rules: -scrape is %v, must be from %v to %v", c.scrape, minScrape, maxScrape))
	}
	return errors.Join(errs...)
}

// healthRules returns rules for all breakers, limiters, notifiers and monitors of a program. They
// fire when a breaker stays open, flaps or refuses calls, a group of breakers or limiters is full,
// or a limiter refuses many requests. They also fire when a notifier does not deliver or gives up,
// a monitor no longer evaluates, a rule fails, metrics are left out, or a file of package
// weirconfig is refused.
//
// Each rule judges each process by itself, so that a healthy process hides no other whose breaker,
// limiter or notifier has the same name.
//
// A breaker is down from the moment it opens until it has closed again. It is down while half-open,
// recovering or forced open, but not while forced closed, disabled or in shadow mode. BreakerOpen
// fires when a breaker has been down for a minute, without a moment in which it was closed.
// BreakerGroupOpen fires once per group, when a member has been down for a minute. For members
// without series of their own, Prometheus has only counts. The number of members still down is the
// number that were down a minute ago, minus the number that closed since then.
//
// NotifierFailing fires when notifications have waited for five minutes, and so once per outage of
// a receiver, however seldom the notifier tries. NotifierDropping fires for notifications that are
// given up, because the receiver refuses them permanently or their alerts are over.
func healthRules(c intervals) []rule {
	return []rule{
		c.breakerOpen(), c.groupOpen(), breakerFlapping(), breakerRefusing(), groupFull(), limiterSaturated(), limiterFull(),
		c.notifierFailing(), notifierDropping(), c.monitorStalled(), ruleFailing(), metricsIncomplete(), configRefused(),
	}
}

// atLeast returns a span such that the last sample before its start and the last sample before its
// end are at least d apart.
func (c intervals) atLeast(d time.Duration) time.Duration { return d + c.scrape }

// The states in which a breaker is down, and all others.
const (
	downStates = `weir_breaker_state=~"open|half_open|recovering|forced_open"`
	upStates   = `weir_breaker_state!~"open|half_open|recovering|forced_open"`
)

func (c intervals) breakerOpen() rule {
	return rule{
		Alert: "BreakerOpen", KeepFiring: 5 * time.Minute,
		Expr:   c.stillDown(`weir_group_key=""`),
		Labels: severity("page"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} has not been closed for a minute"),
	}
}

func (c intervals) groupOpen() rule {
	return rule{
		Alert: "BreakerGroupOpen", KeepFiring: 5 * time.Minute,
		Expr:   c.stillDown(`weir_group_key!=""`),
		Labels: severity("page"), Annotations: summary("{{ $value }} breakers of {{ $labels.weir_breaker_name }} have not been closed for a minute" + worstKeys),
	}
}

// stillDown returns the expression for the number of breakers that have been down for a minute. It
// compares the counts of each key before it sums them up. Otherwise a member that opens and closes
// could hide another one that is down. The key _other stands for all members without series of
// their own. If a count has fallen, its program was restarted, and nothing is known about that
// program yet.
func (c intervals) stillDown(keys string) string {
	down := `sum without (weir_breaker_state) (weir_breaker_state{` + downStates + `,` + keys + `}%s)`
	left := `sum without (weir_breaker_state) (weir_breaker_transitions_total{` + upStates + `,` + keys + `}%s)`
	before := " offset " + promDuration(c.atLeast(time.Minute))
	still := fmt.Sprintf(down+" - ("+left+" - "+left+" >= 0)", before, "", before)
	return fmt.Sprintf(`sum without (weir_group_key) (((%s) > 0) and (`+down+` > 0)) > 0`, still, "")
}

// worstKeys is a template that lists up to five members that are down, by refused and failed calls.
const worstKeys = `{{ with printf "topk(5, sum by (weir_group_key) (rate(weir_breaker_calls_total{job=%q,instance=%q,weir_breaker_name=%q,` +
	`weir_breaker_outcome=~'failure|refused'}[5m])) and sum by (weir_group_key) (weir_breaker_state{job=%q,instance=%q,weir_breaker_name=%q,` +
	`weir_breaker_state=~'open|half_open|recovering|forced_open',weir_group_key!~'|_other'}) > 0)" $labels.job $labels.instance $labels.weir_breaker_name ` +
	`$labels.job $labels.instance $labels.weir_breaker_name | query }}, such as{{ range . }} {{ .Labels.weir_group_key }}{{ end }}{{ end }}`

// flappingKeys is a template that lists up to five members that have closed three times.
const flappingKeys = `{{ with printf "topk(5, increase(weir_breaker_transitions_total{job=%q,instance=%q,weir_breaker_name=%q,` +
	`weir_breaker_state='closed',weir_group_key!~'|_other'}[15m]) >= 3)" $labels.job $labels.instance $labels.weir_breaker_name ` +
	`| query }}, such as{{ range . }} {{ .Labels.weir_group_key }}{{ end }}{{ end }}`

// refusingKeys is a template that lists up to five members that refuse most calls.
const refusingKeys = `{{ with printf "topk(5, sum by (weir_group_key) (rate(weir_breaker_calls_total{job=%q,instance=%q,weir_breaker_name=%q,` +
	`weir_breaker_outcome='refused',weir_group_key!~'|_other'}[5m])) > 0)" $labels.job $labels.instance $labels.weir_breaker_name ` +
	`| query }}, such as{{ range . }} {{ .Labels.weir_group_key }}{{ end }}{{ end }}`

// breakerFlapping counts closings, because a breaker whose probes fail opens many times in one
// outage.
func breakerFlapping() rule {
	return rule{
		Alert:  "BreakerFlapping",
		Expr:   `max without (weir_group_key) (increase(weir_breaker_transitions_total{weir_breaker_state="closed",weir_group_key!="_other"}[15m])) >= 3`,
		Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} flaps: it closed three times in 15 minutes" + flappingKeys),
	}
}

func breakerRefusing() rule {
	return rule{
		Alert: "BreakerRefusing", For: 5 * time.Minute,
		Expr:   `sum without (weir_breaker_outcome, weir_group_key) (rate(weir_breaker_calls_total{weir_breaker_outcome="refused"}[5m])) > 0`,
		Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} refuses {{ $value | humanize }} calls per second" + refusingKeys),
	}
}

func groupFull() rule {
	return rule{
		Alert: "BreakerGroupFull", For: 5 * time.Minute,
		Expr:   `rate(weir_breaker_group_unguarded_total[5m]) > 0`,
		Labels: severity("ticket"), Annotations: summary("the group {{ $labels.weir_breaker_name }} is full: no breaker guards {{ $value | humanize }} calls per second"),
	}
}

func limiterSaturated() rule {
	return rule{
		Alert: "LimiterSaturated", For: 10 * time.Minute,
		Expr: `sum without (weir_limiter_outcome) (rate(weir_limiter_requests_total{weir_limiter_outcome="refused"}[5m]))` +
			` / sum without (weir_limiter_outcome) (rate(weir_limiter_requests_total[5m])) > 0.1`,
		Labels: severity("ticket"), Annotations: summary("limiter {{ $labels.weir_limiter_name }} refuses {{ $value | humanizePercentage }} of its requests"),
	}
}

func limiterFull() rule {
	return rule{
		Alert: "LimiterFull", For: 5 * time.Minute,
		Expr:   `rate(weir_limiter_no_room_total[5m]) > 0`,
		Labels: severity("ticket"), Annotations: summary("limiter {{ $labels.weir_limiter_name }} is full: {{ $value | humanize }} requests and holds per second are of keys without room"),
	}
}

// notifierFailing judges by what is pending, because a notifier may try once an hour if its
// receiver asks for that.
func (c intervals) notifierFailing() rule {
	return rule{
		Alert: "NotifierFailing", For: c.atLeast(5 * time.Minute), KeepFiring: 5 * time.Minute,
		Expr:   `weir_notifier_pending > 0`,
		Labels: severity("page"), Annotations: summary("notifier {{ $labels.weir_notifier_name }} does not deliver: {{ $value }} notifications wait"),
	}
}

func notifierDropping() rule {
	return rule{
		Alert:  "NotifierDropping",
		Expr:   `sum without (error_type) (increase(weir_notifier_notifications_total{weir_notifier_outcome="dropped"}[15m])) > 0`,
		Labels: severity("ticket"), Annotations: summary("notifier {{ $labels.weir_notifier_name }} gave up notifications"),
	}
}

// monitorStalled fires if there was no evaluation between two samples. It compares times of the
// program's clock only with each other, so a wrong clock does not matter.
func (c intervals) monitorStalled() rule {
	const last = "weir_alert_last_evaluation_timestamp_seconds"
	return rule{
		Alert:  "MonitorStalled",
		Expr:   "timestamp(" + last + ") - " + last + " and " + last + " == " + last + " offset " + promDuration(c.atLeast(3*c.evaluation)),
		Labels: severity("page"), Annotations: summary("rule {{ $labels.weir_alert_rule }} was last evaluated {{ $value | humanizeDuration }} ago"),
	}
}

func ruleFailing() rule {
	return rule{
		Alert: "RuleFailing", For: 5 * time.Minute,
		Expr:   `increase(weir_alert_evaluations_total{error_type!=""}[5m]) > 0`,
		Labels: severity("ticket"), Annotations: summary("rule {{ $labels.weir_alert_rule }} cannot be evaluated: {{ $labels.error_type }}"),
	}
}

// metricsIncomplete fires if sources panic while they are read, or have series that are not valid
// or that another source has too.
func metricsIncomplete() rule {
	return rule{
		Alert: "MetricsIncomplete", For: 5 * time.Minute,
		Expr: `increase(weir_exporter_source_panics_total[5m]) > 0 or` +
			` sum without (weir_exporter_reason) (increase(weir_exporter_skipped_samples_total[5m])) > 0`,
		Labels: severity("ticket"), Annotations: summary("metrics are left out, because sources panic, have the same name or are not valid"),
	}
}

func configRefused() rule {
	return rule{
		Alert: "ConfigRefused", For: 5 * time.Minute,
		Expr:   `weir_config_refused > 0`,
		Labels: severity("ticket"), Annotations: summary("the file {{ $labels.weir_config_file }} is refused, so the program runs with an earlier one"),
	}
}

func severity(s string) map[string]string { return map[string]string{"severity": s} }
func summary(s string) map[string]string  { return map[string]string{"summary": s} }
