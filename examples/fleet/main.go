// Command fleet shows three processes that share one limit, one breaker and one alert through Redis
// or Valkey.
//
// It starts a redis-server, a payment service, and three processes of itself. Each process offers
// 30 payments per second. The shared token bucket allows 60 per second in total. In the middle of
// the run the service fails. One process alone makes too few calls for its breaker to judge, but
// the fleet makes enough. The breakers open within a tenth of a second of each other, by the shared
// counts, and close after the service has recovered. An alert over the same counts fires and
// resolves. It has the same ID in each process, so that a receiver counts it once.
//
//	fleet                              run for ten seconds
//	fleet -for 1m -redis host:6379     run slower, on an existing server
//	fleet | tail -1                    only the totals, as JSON
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

func main() { os.Exit(command(os.Args[1:])) }

// command runs the program and returns the exit status.
func command(args []string) int {
	if len(args) == 3 && args[0] == nodeWord {
		return exitStatus(runNode(args[1], args[2]))
	}
	o, err := parse(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills the program at once
	return exitStatus(run(ctx, o, os.Stdout))
}

func exitStatus(err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleet: %v\n", err)
		return 1
	}
	return 0
}

// options holds the flags.
type options struct {
	run   time.Duration
	redis string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.run, "for", 10*time.Second, "the `duration` of the run")
	flags.StringVar(&o.redis, "redis", "", "the `address` of a Redis or Valkey server (default: start a server)")
	if err = flags.Parse(args); err != nil {
		return o, err
	}
	if o.run <= 0 {
		err = fmt.Errorf("-for is %v, must be above 0", o.run)
	} else if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "fleet: %v\n", err)
	}
	return o, err
}
