package promrules

import (
	"errors"
	"fmt"
	"time"
)

// HealthConfig configures [Health]: it says how often the programs and the Prometheus server work.
// The zero value is right for both with their own defaults.
type HealthConfig struct {
	// Interval is the longest alert.Config.Interval of the programs, up to 1h. Default 5s.
	Interval time.Duration
	// Scrape is the interval at which Prometheus scrapes the programs, from 1ms to 2m: with a longer
	// one, series are lost now and then. Rules for a longer interval than the true one are right
	// too, and fire later by the difference. Default 1m.
	Scrape time.Duration
}

const (
	longestInterval = time.Hour
	shortestScrape  = time.Millisecond
	longestScrape   = 2 * time.Minute // Prometheus takes a sample for gone after 5 minutes
)

// validate returns an error that names every field that is out of bounds, or nil.
func (c HealthConfig) validate() error {
	d := c.orDefault()
	var errs []error
	if d.Interval < 0 || d.Interval > longestInterval {
		errs = append(errs, fmt.Errorf("promrules: Interval is %v, must be at most %v", c.Interval, longestInterval))
	}
	if d.Scrape < shortestScrape || d.Scrape > longestScrape {
		errs = append(errs, fmt.Errorf("promrules: Scrape is %v, must be from %v to %v", c.Scrape, shortestScrape, longestScrape))
	}
	return errors.Join(errs...)
}

func (c HealthConfig) orDefault() HealthConfig {
	if c.Interval == 0 {
		c.Interval = 5 * time.Second
	}
	if c.Scrape == 0 {
		c.Scrape = time.Minute
	}
	return c
}

// Health returns rules about the parts of weir themselves, for all breakers, limiters, notifiers and
// monitors of a program: breakers that do not close again, that flap or that refuse calls, limiters
// that refuse much, notifiers that do not deliver, and monitors that have ceased to evaluate. The
// error names every field of c that is out of bounds.
//
// A breaker is down from the moment it opens until it is closed again: half-open and forced open are
// down; forced closed, disabled and shadow are not. BreakerOpen fires when a breaker has been down
// for a minute, and BreakerGroupOpen, once for each group, when a member has. Of the members without
// series of their own Prometheus knows only the numbers: those that were down a minute ago, less
// those that have closed since, are still down.
func Health(c HealthConfig) ([]Rule, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.orDefault()
	return []Rule{
		c.breakerOpen(), c.groupOpen(), breakerFlapping(), breakerRejecting(), limiterSaturated(), notifierFailing(), c.engineStalled(),
	}, nil
}

// over is a span such that two samples, of which one is the last before its beginning
// and the other the last before its end, lie the least time apart or more.
func (c HealthConfig) over(least time.Duration) time.Duration { return least + c.Scrape }

// The states in which a breaker is down, and those by which it leaves them for others.
const (
	downStates = `weir_breaker_state=~"open|half_open|forced_open"`
	upStates   = `weir_breaker_state!~"open|half_open|forced_open"`
)

func (c HealthConfig) breakerOpen() Rule {
	return Rule{
		Alert: "BreakerOpen", For: c.over(time.Minute), keepFiring: 5 * time.Minute,
		Expr:   `sum without (weir_breaker_state) (weir_breaker_state{` + downStates + `,weir_group_key=""}) > 0`,
		Labels: severity("page"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} has not been closed for a minute"),
	}
}

// groupOpen judges by each key first, so that one that opens and closes again hides no
// other; _other is a key here. Totals that have fallen are those of a program that was
// started anew, of which nothing is known yet.
func (c HealthConfig) groupOpen() Rule {
	const (
		down = `sum without (weir_breaker_state) (weir_breaker_state{` + downStates + `,weir_group_key!=""}%s)`
		left = `sum without (weir_breaker_state) (weir_breaker_transitions_total{` + upStates + `,weir_group_key!=""}%s)`
	)
	before := " offset " + promDuration(c.over(time.Minute))
	still := fmt.Sprintf(down+" - ("+left+" - "+left+" >= 0)", before, "", before)
	return Rule{
		Alert: "BreakerGroupOpen", keepFiring: 5 * time.Minute,
		Expr:   fmt.Sprintf(`sum without (weir_group_key) (((%s) > 0) and (`+down+` > 0)) > 0`, still, ""),
		Labels: severity("page"), Annotations: summary("{{ $value }} breakers of {{ $labels.weir_breaker_name }} have not been closed for a minute" + worstKeys),
	}
}

// worstKeys names the members that are down now and have refused and failed the most
// calls lately.
const worstKeys = `{{ with printf "topk(5, sum by (weir_group_key) (rate(weir_breaker_calls_total{job=%q,instance=%q,weir_breaker_name=%q,` +
	`weir_breaker_outcome=~'failure|refused'}[5m])) and sum by (weir_group_key) (weir_breaker_state{job=%q,instance=%q,weir_breaker_name=%q,` +
	`weir_breaker_state=~'open|half_open|forced_open',weir_group_key!~'|_other'}) > 0)" $labels.job $labels.instance $labels.weir_breaker_name ` +
	`$labels.job $labels.instance $labels.weir_breaker_name | query }}, such as{{ range . }} {{ .Labels.weir_group_key }}{{ end }}{{ end }}`

func breakerFlapping() Rule {
	return Rule{
		Alert:  "BreakerFlapping",
		Expr:   `max without (weir_group_key) (increase(weir_breaker_transitions_total{weir_breaker_state="open",weir_group_key!="_other"}[15m])) >= 3`,
		Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} has opened three times in 15 minutes"),
	}
}

func breakerRejecting() Rule {
	return Rule{
		Alert: "BreakerRejecting", For: 5 * time.Minute,
		Expr:   `sum by (weir_breaker_name) (rate(weir_breaker_calls_total{weir_breaker_outcome="refused"}[5m])) > 0`,
		Labels: severity("ticket"), Annotations: summary("breaker {{ $labels.weir_breaker_name }} refuses {{ $value | humanize }} calls a second"),
	}
}

func limiterSaturated() Rule {
	return Rule{
		Alert: "LimiterSaturated", For: 10 * time.Minute,
		Expr: `sum by (weir_limiter_name) (rate(weir_limiter_requests_total{weir_limiter_outcome="refused"}[5m]))` +
			` / sum by (weir_limiter_name) (rate(weir_limiter_requests_total[5m])) > 0.1`,
		Labels: severity("ticket"), Annotations: summary("limiter {{ $labels.weir_limiter_name }} refuses {{ $value | humanizePercentage }} of its requests"),
	}
}

func notifierFailing() Rule {
	return Rule{
		Alert: "NotifierFailing", For: 5 * time.Minute,
		Expr: `sum by (weir_notifier_name) (increase(weir_notifier_notifications_total{weir_notifier_outcome=~"failed|refused"}[10m])) > 0` +
			` unless sum by (weir_notifier_name) (increase(weir_notifier_notifications_total{weir_notifier_outcome="delivered"}[10m])) > 0`,
		Labels: severity("page"), Annotations: summary("notifier {{ $labels.weir_notifier_name }} delivers nothing"),
	}
}

// engineStalled fires where no evaluation lies between two samples. It compares the
// monitor's clock with itself alone, so that a clock that is wrong stalls nothing.
func (c HealthConfig) engineStalled() Rule {
	const last = "weir_alert_last_evaluation_timestamp_seconds"
	return Rule{
		Alert:  "AlertEngineStalled",
		Expr:   "timestamp(" + last + ") - " + last + " and " + last + " == " + last + " offset " + promDuration(c.over(3*c.Interval)),
		Labels: severity("page"), Annotations: summary("rule {{ $labels.weir_alert_rule }} was last evaluated {{ $value | humanizeDuration }} ago"),
	}
}

func severity(s string) map[string]string { return map[string]string{"severity": s} }
func summary(s string) map[string]string  { return map[string]string{"summary": s} }
