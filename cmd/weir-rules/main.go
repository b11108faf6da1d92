// Command weir-rules writes alert rules for Prometheus over the metrics of weir to standard output.
//
//	go run github.com/weir-go/weir/cmd/weir-rules@latest -scrape 15s -slo payments=0.999 >alerts.yml
//
// The rules over the health of a program are BreakerOpen, BreakerGroupOpen, BreakerFlapping,
// BreakerRefusing, BreakerGroupFull, LimiterSaturated, LimiterFull, NotifierFailing,
// NotifierDropping, MonitorStalled, RuleFailing, MetricsIncomplete and ConfigRefused. They are made
// for these intervals:
//
//	-scrape     the interval at which Prometheus scrapes the programs, from 1ms to 2m, default 1m
//	-interval   the longest interval of an alert monitor, up to 1h, default 5s
//
// If -scrape is longer than the real interval, the rules stay correct but fire later by the
// difference.
//
// Each flag -slo adds four rules over the error budget of a breaker or gate. Its value is the name
// and the share of calls that have to succeed. The two rules that page are those of
// alert.BurnRateRules, with the same names. They judge a job and not a process, so their alerts
// have other labels, and Alertmanager has both. It notifies of both together if it groups by
// alertname. The other two open a ticket, and their spans are longer than a process usually lives.
//
// The exit status is 2 if the arguments are invalid, and 1 if the rules cannot be written. The
// directory exporters/prom/mixin contains the rules for the default intervals, and a dashboard for
// Grafana.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run writes the rules for the arguments to out, or an error to log. It returns the exit status.
func run(args []string, out, log io.Writer) int {
	groups, err := groupsFor(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(log, "%v\nweir-rules -h shows the arguments\n", err)
		return 2
	}
	if err := write(out, groups...); err != nil {
		fmt.Fprintln(log, "weir-rules:", err)
		return 1
	}
	return 0
}

// groupsFor returns the rules for the arguments. If they ask for help, it writes the usage to out
// and returns flag.ErrHelp.
func groupsFor(args []string, out io.Writer) ([]group, error) {
	var c intervals
	objectives := group{name: "weir error budgets"}
	flags := flag.NewFlagSet("weir-rules", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.DurationVar(&c.scrape, "scrape", time.Minute, "`interval` at which Prometheus scrapes the programs")
	flags.DurationVar(&c.evaluation, "interval", 5*time.Second, "longest `interval` of an alert monitor")
	flags.Func("slo", "`breaker=share` of the calls that have to succeed, such as payments=0.999; may be repeated", func(value string) error {
		rules, err := objectiveRules(value)
		objectives.rules = append(objectives.rules, rules...)
		return err
	})
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		flags.Usage()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("weir-rules: %w", err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("weir-rules: unknown argument %q", flags.Arg(0))
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	groups := []group{{"weir health", healthRules(c)}}
	if len(objectives.rules) > 0 {
		groups = append(groups, objectives)
	}
	return groups, nil
}

// objectiveRules returns the rules for a value of the flag -slo.
func objectiveRules(value string) ([]rule, error) {
	i := strings.LastIndexByte(value, '=') // a name may contain one
	if i < 1 {
		return nil, errors.New("must be a name and a share, such as payments=0.999")
	}
	slo, err := strconv.ParseFloat(value[i+1:], 64)
	if err != nil {
		return nil, fmt.Errorf("the share %q is no number", value[i+1:])
	}
	return burnRateRules(value[:i], slo)
}
