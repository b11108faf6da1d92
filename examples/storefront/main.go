// Command storefront runs a small shop, to show weir with real traffic.
//
// The shop takes a few hundred orders per second. A payment service charges each order, over HTTP
// on the loopback interface. During the run there is a rush of customers. Then the service fails
// half of its calls, then it hangs, and then it recovers. At last an operator lowers the limit.
//
// All calls go through one gate. Its limiter refuses calls during the rush. Its breaker opens on
// the failures and closes after them. An alert rule over the same counts fires and resolves. The
// gate and the rule come from a configuration file, weir.yaml, which can be edited during the run.
// The metrics are exported through OpenTelemetry. Prometheus can scrape them at the address shown,
// and a live page is at the same address.
//
//	storefront                            run for ten seconds, live on a terminal
//	storefront -for 1m                    run slower
//	storefront | tail -1                  one line per second, and the totals as JSON at the end
//	storefront -admin-token secret        accept actions, such as another limit, at /admin/weir/
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 storefront
//
// Ctrl-C ends the run early and prints the totals so far.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(command()) }

// command runs the program and returns the exit status.
func command() int {
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills the program at once
	if err := run(ctx, o, newView(os.Stdout), os.Stdout, os.Stderr); err != nil {
		printTo(os.Stderr, "storefront: %v\n", err)
		return 1
	}
	return 0
}

// options holds the flags.
type options struct {
	run    time.Duration
	listen string
	otel   string
	token  string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("storefront", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.run, "for", 10*time.Second, "the `duration` of the run")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "the `address` of /metrics and of the live page /debug/weir/; port 0 means any free port")
	flags.StringVar(&o.otel, "otel", "", "the `file` for the exports of OpenTelemetry if OTEL_EXPORTER_OTLP_ENDPOINT is not set;\n"+
		"- means standard error (default: exports are counted and discarded)")
	flags.StringVar(&o.token, "admin-token", "", "the bearer `token` of requests to the admin API /admin/weir/ (default: there is no admin API)")
	if err = flags.Parse(args); err != nil {
		return o, err
	}
	if o.run <= 0 {
		err = fmt.Errorf("-for is %v, must be above 0", o.run)
	} else if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		printTo(stderr, "storefront: %v\n", err)
	}
	return o, err
}
