package promrules

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// HealthConfig configures [Health]. The zero value fits programs and a Prometheus server with their
// default intervals.
type HealthConfig struct {
	// Interval is the longest alert.Config.Interval of the programs, up to 1h. Default 5s.
	Interval time.Duration
	// Scrape is the interval at which Prometheus scrapes the programs, from 1ms to 2m. With a
	// longer interval, series would sometimes be missing. If Scrape is longer than the real
	// interval, the rules stay correct but fire later by the difference. Default 1m.
	Scrape time.Duration
}

const (
	maxInterval = time.Hour
	minScrape   = time.Millisecond
	maxScrape   = 2 * time.Minute // Prometheus considers a series stale after 5 minutes
)

// validate returns an error that names every invalid field, or nil.
func (c HealthConfig) validate() error {
	d := c.orDefault()
	var errs []error
	if d.Interval < 0 || d.Interval > maxInterval {
		errs = append(errs, fmt.Errorf("promrules: Interval is %v, must be at most %v", c.Interval, maxInterval))
	}
	if d.Scrape < minScrape || d.Scrape > maxScrape {
		errs = append(errs, fmt.Errorf("promrules: Scrape is %v, must be from %v to %v", c.Scrape, minScrape, maxScrape))
	}
	return errors.Join(errs...)
}

func (c HealthConfig) orDefault() HealthConfig {
	c.Interval = cmp.Or(c.Interval, 5*time.Second)
	c.Scrape = cmp.Or(c.Scrape, time.Minute)
	return c
}

// Health returns rules for all breakers, limiters, notifiers and monitors of a program. They fire
// when a breaker stays open, flaps or refuses calls, a group of breakers or limiters is full, or a
// limiter refuses many requests. They also fire when a notifier does not deliver or gives up, a
// monitor no longer evaluates, a rule fails, metrics are left out, or a file of package weirconfig
// is refused. The error names every invalid field of c.
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
func Health(c HealthConfig) ([]Rule, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.orDefault()
	return []Rule{
		c.breakerOpen(), c.groupOpen(), breakerFlapping(), breakerRefusing(), groupFull(), limiterSaturated(), limiterFull(),
		c.notifierFailing(), notifierDropping(), c.monitorStalled(), ruleFailing(), metricsIncomplete(), configRefused(),
	}, nil
}

// atLeast returns a span such that the last sample before its start and the last sample before its
// end are at least d apart.
func (c HealthConfig) atLeast(d time.Duration) time.Duration { return d + c.Scrape }

// The states in which a breaker is down, and all others.
const (
	downStates = `weir_breaker_state=~"open|half_open|recovering|forced_open"`
	upStates   = `weir_breaker_state!~"open|half_open|recovering|forced_open"`
)

func (c HealthConfig) breakerOpen() Rule {
	return Rule{
		Alert: "BreakerOpen", keepFiring: 5 * time.Minute,
		Expr:   c.stillDown(`weir_group_key=""`),
		Labels: severity("page"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} has not been closed for a minute"),
	}
}

func (c HealthConfig) groupOpen() Rule {
	return Rule{
		Alert: "BreakerGroupOpen", keepFiring: 5 * time.Minute,
		Expr:   c.stillDown(`weir_group_key!=""`),
		Labels: severity("page"), Annotations: summary("{{ $value }} breakers of {{ $labels.weir_breaker_name }} have not been closed for a minute" + worstKeys),
	}
}

// stillDown returns the expression for the number of breakers that have been down for a minute. It
// compares the counts of each key before it sums them up. Otherwise a member that opens and closes
// could hide another one that is down. The key _other stands for all members without series of
// their own. If a count has fallen, its program was restarted, and nothing is known about that
// program yet.
func (c HealthConfig) stillDown(keys string) string {
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
func breakerFlapping() Rule {
	return Rule{
		Alert:  "BreakerFlapping",
		Expr:   `max without (weir_group_key) (increase(weir_breaker_transitions_total{weir_breaker_state="closed",weir_group_key!="_other"}[15m])) >= 3`,
		Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} flaps: it closed three times in 15 minutes" + flappingKeys),
	}
}

func breakerRefusing() Rule {
	return Rule{
		Alert: "BreakerRefusing", For: 5 * time.Minute,
		Expr:   `sum without (weir_breaker_outcome, weir_group_key) (rate(weir_breaker_calls_total{weir_breaker_outcome="refused"}[5m])) > 0`,
		Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} refuses {{ $value | humanize }} calls per second" + refusingKeys),
	}
}

func groupFull() Rule {
	return Rule{
		Alert: "BreakerGroupFull", For: 5 * time.Minute,
		Expr:   `rate(weir_breaker_group_unguarded_total[5m]) > 0`,
		Labels: severity("ticket"), Annotations: summary("the group {{ $labels.weir_breaker_name }} is full: no breaker guards {{ $value | humanize }} calls per second"),
	}
}

func limiterSaturated() Rule {
	return Rule{
		Alert: "LimiterSaturated", For: 10 * time.Minute,
		Expr: `sum without (weir_limiter_outcome) (rate(weir_limiter_requests_total{weir_limiter_outcome="refused"}[5m]))` +
			` / sum without (weir_limiter_outcome) (rate(weir_limiter_requests_total[5m])) > 0.1`,
		Labels: severity("ticket"), Annotations: summary("limiter {{ $labels.weir_limiter_name }} refuses {{ $value | humanizePercentage }} of its requests"),
	}
}

func limiterFull() Rule {
	return Rule{
		Alert: "LimiterFull", For: 5 * time.Minute,
		Expr:   `rate(weir_limiter_no_room_total[5m]) > 0`,
		Labels: severity("ticket"), Annotations: summary("limiter {{ $labels.weir_limiter_name }} is full: {{ $value | humanize }} requests and holds per second are of keys without room"),
	}
}

// notifierFailing judges by what is pending, because a notifier may try once an hour if its
// receiver asks for that.
func (c HealthConfig) notifierFailing() Rule {
	return Rule{
		Alert: "NotifierFailing", For: c.atLeast(5 * time.Minute), keepFiring: 5 * time.Minute,
		Expr:   `weir_notifier_pending > 0`,
		Labels: severity("page"), Annotations: summary("notifier {{ $labels.weir_notifier_name }} does not deliver: {{ $value }} notifications wait"),
	}
}

func notifierDropping() Rule {
	return Rule{
		Alert:  "NotifierDropping",
		Expr:   `sum without (error_type) (increase(weir_notifier_notifications_total{weir_notifier_outcome="dropped"}[15m])) > 0`,
		Labels: severity("ticket"), Annotations: summary("notifier {{ $labels.weir_notifier_name }} gave up notifications"),
	}
}

// monitorStalled fires if there was no evaluation between two samples. It compares times of the
// program's clock only with each other, so a wrong clock does not matter.
func (c HealthConfig) monitorStalled() Rule {
	const last = "weir_alert_last_evaluation_timestamp_seconds"
	return Rule{
		Alert:  "MonitorStalled",
		Expr:   "timestamp(" + last + ") - " + last + " and " + last + " == " + last + " offset " + promDuration(c.atLeast(3*c.Interval)),
		Labels: severity("page"), Annotations: summary("rule {{ $labels.weir_alert_rule }} was last evaluated {{ $value | humanizeDuration }} ago"),
	}
}

func ruleFailing() Rule {
	return Rule{
		Alert: "RuleFailing", For: 5 * time.Minute,
		Expr:   `increase(weir_alert_evaluations_total{error_type!=""}[5m]) > 0`,
		Labels: severity("ticket"), Annotations: summary("rule {{ $labels.weir_alert_rule }} cannot be evaluated: {{ $labels.error_type }}"),
	}
}

// metricsIncomplete fires if sources panic while they are read, or have series that are not valid
// or that another source has too.
func metricsIncomplete() Rule {
	return Rule{
		Alert: "MetricsIncomplete", For: 5 * time.Minute,
		Expr: `increase(weir_exporter_source_panics_total[5m]) > 0 or` +
			` sum without (weir_exporter_reason) (increase(weir_exporter_skipped_samples_total[5m])) > 0`,
		Labels: severity("ticket"), Annotations: summary("metrics are left out, because sources panic, have the same name or are not valid"),
	}
}

func configRefused() Rule {
	return Rule{
		Alert: "ConfigRefused", For: 5 * time.Minute,
		Expr:   `weir_config_refused > 0`,
		Labels: severity("ticket"), Annotations: summary("the file {{ $labels.weir_config_file }} is refused, so the program runs with an earlier one"),
	}
}

func severity(s string) map[string]string { return map[string]string{"severity": s} }
func summary(s string) map[string]string  { return map[string]string{"summary": s} }
