// Command storefront runs a small shop, to show weir at work on real traffic.
//
// The shop takes a few hundred orders a second and has each of them paid by a payment
// service, over HTTP on the loopback interface. In the course of the run there is a rush of
// customers, then the service fails half its calls, then it hangs, then it recovers. All
// calls go through one gate: its limiter refuses what the rush brings too much, its breaker
// opens on the failures and closes after them, and an alert rule over the same counts fires
// and resolves. Meanwhile the figures leave through OpenTelemetry, and Prometheus may fetch
// them at the address shown, where there is a live page too.
//
//	storefront                            ten seconds of it, live on a terminal
//	storefront -for 1m                    the same, slower
//	storefront | tail -1                  a line a second, and the sums as JSON at the end
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 storefront
//
// Ctrl-C ends it early, with the sums of what there was.
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

// command returns the exit status.
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
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the end
	if err := run(ctx, o, newView(os.Stdout), os.Stdout, os.Stderr); err != nil {
		put(os.Stderr, "storefront: %v\n", err)
		return 1
	}
	return 0
}

// options are the command's flags.
type options struct {
	run    time.Duration
	listen string
	otel   string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("storefront", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.run, "for", 10*time.Second, "how `long` the run takes")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` at which /metrics and the live page /debug/weir/ are served; port 0 is any free one")
	flags.StringVar(&o.otel, "otel", "", "`file` for what OpenTelemetry exports where no OTEL_EXPORTER_OTLP_ENDPOINT is set;\n"+
		"- is standard error (default: it is exported and counted, but kept nowhere)")
	if err = flags.Parse(args); err != nil {
		return o, err
	}
	if o.run <= 0 {
		err = fmt.Errorf("-for is %v, must be above 0", o.run)
	} else if flags.NArg() > 0 {
		err = fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if err != nil {
		put(stderr, "storefront: %v\n", err)
	}
	return o, err
}
