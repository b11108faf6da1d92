// Command weir-rules writes alert rules for Prometheus over the metrics of weir to standard output.
//
//	go run github.com/weir-go/weir/cmd/weir-rules@latest -scrape 15s >alerts.yml
//
// The flags are the intervals that the rules are made for:
//
//	-scrape     how often Prometheus scrapes the programs, default 1m
//	-interval   the longest interval of an alert monitor, default 5s
//
// The rules are BreakerOpen, BreakerGroupOpen, BreakerFlapping, BreakerRefusing, BreakerGroupFull,
// LimiterSaturated, LimiterFull, NotifierFailing, NotifierDropping, MonitorStalled, RuleFailing,
// MetricsIncomplete and ConfigRefused. The directory exporters/prom/mixin contains the rules for
// the default intervals, and a dashboard for Grafana. The package alert/promrules writes rules for
// the error budget of one service.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/weir-go/weir/alert/promrules"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var c promrules.HealthConfig
	flags := flag.NewFlagSet("weir-rules", flag.ContinueOnError)
	flags.DurationVar(&c.Scrape, "scrape", 0, "how often Prometheus scrapes the programs (default 1m)")
	flags.DurationVar(&c.Interval, "interval", 0, "the longest interval of an alert monitor (default 5s)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	health, err := promrules.Health(c)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, "# Written by weir-rules.\n"); err != nil {
		return err
	}
	return promrules.Write(out, map[string][]promrules.Rule{"weir health": health})
}
