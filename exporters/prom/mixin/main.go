// Mixin writes alerts.yml, the alert rules over the metrics of weir, for the intervals
// that you have:
//
//	go run github.com/weir-go/weir/exporters/prom/mixin -scrape 15s >alerts.yml
//
// Its folder has what goes into other programs, with the tests that it is right:
//
//	alerts.yml       what it writes without flags: for monitors that evaluate every 5 seconds, and
//	                 a Prometheus that scrapes every minute or more often
//	alerts_test.yml  their tests: promtool test rules alerts_test.yml
//	dashboard.json   a dashboard for Grafana, to be imported
//
// BreakerOpen, BreakerGroupOpen, BreakerFlapping, BreakerRefusing, LimiterSaturated,
// NotifierFailing and MonitorStalled look after all that a program has. Rules for
// the error budget of one service are written by the package promrules.
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
	flags := flag.NewFlagSet("mixin", flag.ContinueOnError)
	flags.DurationVar(&c.Scrape, "scrape", 0, "how often Prometheus scrapes the programs (default 1m)")
	flags.DurationVar(&c.Interval, "interval", 0, "the longest interval of an alert monitor (default 5s)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	health, err := promrules.Health(c)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, "# Written by go run ./mixin.\n"); err != nil {
		return err
	}
	return promrules.Write(out, map[string][]promrules.Rule{"weir health": health})
}
