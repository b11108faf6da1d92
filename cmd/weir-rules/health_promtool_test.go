package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// lastEvaluations returns the time of a monitor's last evaluation at each scrape, by a clock with a
// constant error. The monitor stops at the time stop, or never if stop is 0.
func lastEvaluations(scrape, interval, wrong, stop time.Duration) string {
	var values []string
	for at := time.Duration(0); at <= 40*time.Minute; at += scrape {
		last := at.Truncate(interval)
		if stop > 0 {
			last = min(last, stop.Truncate(interval))
		}
		values = append(values, fmt.Sprint(1e6+(last+wrong).Seconds()))
	}
	return strings.Join(values, " ")
}

func TestMonitorStalledFiresOnlyForAStoppedMonitor(t *testing.T) {
	for _, scrape := range []time.Duration{time.Second, 15 * time.Second, time.Minute, 2 * time.Minute} {
		for _, interval := range []time.Duration{5 * time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprint(scrape, " ", interval), func(t *testing.T) {
				group := healthRules(intervals{scrape: scrape, evaluation: interval})
				dir, every := writeRules(t, group), max(min(scrape, 15*time.Second), 5*time.Second)
				const firing = `count by (alertname, weir_alert_rule) (ALERTS{alertstate="firing"})`
				const ever = `count by (alertname, weir_alert_rule) (last_over_time(ALERTS{alertstate="firing"}[40m]))`
				name := func(rule string) string {
					return `weir_alert_last_evaluation_timestamp_seconds{weir_alert_rule="` + rule + `"}`
				}
				stopped := expectation{40 * time.Minute, ever, []string{"MonitorStalled stops"}}
				promtoolTest(t, dir, "weir_alert_rule", scrape, every, []series{
					{name("right"), lastEvaluations(scrape, interval, 0, 0)},
					{name("slow"), lastEvaluations(scrape, interval, -time.Hour, 0)},
					{name("fast"), lastEvaluations(scrape, interval, time.Hour, 0)},
					{name("stops"), lastEvaluations(scrape, interval, 0, 10*time.Minute)},
				}, []expectation{
					{10*time.Minute + 3*interval - every, firing, nil},
					{10*time.Minute + 4*interval + 3*scrape, firing, stopped.want},
					stopped,
				})
			})
		}
	}
}

// A program restarts, and its counters begin at 0, while members of a group are open.
func TestRestartIsNotAnOutage(t *testing.T) {
	group := healthRules(intervals{evaluation: 5 * time.Second, scrape: 15 * time.Second})
	of := func(key, state string) string {
		return `{weir_breaker_name="g",weir_group_key="` + key + `",weir_breaker_state="` + state + `"}`
	}
	promtoolTest(t, writeRules(t, group), "weir_breaker_name", 15*time.Second, 15*time.Second, []series{
		{"weir_breaker_state" + of("a", "open"), "0x10 1 1 1 0x40"},
		{"weir_breaker_state" + of("_other", "open"), "0x10 3 3 3 0 1 1 0x38"},
		{"weir_breaker_transitions_total" + of("a", "closed"), "50x12 0x40"},
		{"weir_breaker_transitions_total" + of("_other", "closed"), "5000x12 0x40"},
	}, []expectation{{12 * time.Minute, `count by (alertname, weir_breaker_name) (last_over_time(ALERTS{alertstate="firing"}[12m]))`, nil}})
}
