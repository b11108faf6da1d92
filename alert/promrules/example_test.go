package promrules_test

import (
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/weir-go/weir/alert/promrules"
)

// A rules file for the objective of one service and the health of all breakers and limiters.
func Example() {
	payments, err := promrules.BurnRate("payments", 0.999)
	if err != nil {
		log.Fatal(err)
	}
	for _, rule := range payments {
		rule.Annotations["runbook"] = "https://runbooks.example/payments"
	}
	health, err := promrules.Health(promrules.HealthConfig{Scrape: 15 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	var file strings.Builder
	if err := promrules.Write(&file, map[string][]promrules.Rule{"payments": payments, "weir": health}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Count(file.String(), "- alert: "), "rules")
	// Output: 17 rules
}

func ExampleWrite() {
	_ = promrules.Write(os.Stdout, map[string][]promrules.Rule{"mine": {{
		Alert: "BreakerOpen", Expr: `weir_breaker_state{weir_breaker_state="open"} == 1`, For: time.Minute,
		Labels: map[string]string{"severity": "page"},
	}}})
	// Output:
	// groups:
	// - name: "mine"
	//   rules:
	//   - alert: "BreakerOpen"
	//     expr: "weir_breaker_state{weir_breaker_state=\"open\"} == 1"
	//     for: 60s
	//     labels:
	//       severity: "page"
}

func ExampleHealth() {
	health, err := promrules.Health(promrules.HealthConfig{Scrape: 15 * time.Second})
	if err != nil {
		panic(err)
	}
	for _, rule := range health {
		rule.Annotations["runbook"] = "https://runbooks.example/" + rule.Alert
		if rule.Alert == "NotifierFailing" {
			_ = promrules.Write(os.Stdout, map[string][]promrules.Rule{"weir health": {rule}})
		}
	}
	// Output:
	// groups:
	// - name: "weir health"
	//   rules:
	//   - alert: "NotifierFailing"
	//     expr: "weir_notifier_pending > 0"
	//     for: 315s
	//     keep_firing_for: 300s
	//     labels:
	//       severity: "page"
	//     annotations:
	//       runbook: "https://runbooks.example/NotifierFailing"
	//       summary: "notifier {{ $labels.weir_notifier_name }} does not deliver: {{ $value }} notifications wait"
}

func ExampleRule() {
	burn, err := promrules.BurnRate("payments", 0.999)
	if err != nil {
		panic(err)
	}
	for _, rule := range burn {
		os.Stdout.WriteString(rule.Alert + ", " + rule.Labels["severity"] + "\n")
	}
	// Output:
	// payments burn 14.4x, page
	// payments burn 6x, page
	// payments burn 3x, ticket
	// payments burn 1x, ticket
}

func ExampleHealthConfig() {
	// Monitors evaluate every 30 seconds, and Prometheus scrapes every 15.
	health, err := promrules.Health(promrules.HealthConfig{Interval: 30 * time.Second, Scrape: 15 * time.Second})
	if err != nil {
		panic(err)
	}
	for _, rule := range health {
		os.Stdout.WriteString(rule.Alert + ", " + rule.Labels["severity"] + "\n")
	}
	// Output:
	// BreakerOpen, page
	// BreakerGroupOpen, page
	// BreakerFlapping, ticket
	// BreakerRefusing, ticket
	// BreakerGroupFull, ticket
	// LimiterSaturated, ticket
	// LimiterFull, ticket
	// NotifierFailing, page
	// NotifierDropping, ticket
	// MonitorStalled, page
	// RuleFailing, ticket
	// MetricsIncomplete, ticket
	// ConfigRefused, ticket
}
