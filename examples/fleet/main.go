// Command fleet shows three processes that share one limit, one breaker and one alert, on a
// Redis or Valkey.
//
// It starts a redis-server of its own, a payment service, and itself three times. Each
// process makes thirty payments a second, of which the fleet's token bucket lets sixty through
// for all three. In the middle of the run the service fails. No process alone makes the calls
// that its breaker takes to judge, but all of them together do: the breakers open within a
// tenth of a second of each other, on what the fleet has counted, and close again after
// the service has recovered. An alert over the same counts fires and resolves: in every
// process, with one ID, so that whoever is told counts it once.
//
//	fleet                              ten seconds of it
//	fleet -for 1m -redis host:6379     the same, slower, on a server that is there
//	fleet | tail -1                    the sums as JSON
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

func main() { os.Exit(command(os.Args[1:])) }

// command returns the exit status.
func command(args []string) int {
	if len(args) == 3 && args[0] == nodeWord {
		return exit(runNode(args[1], args[2]))
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
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the end
	return exit(run(ctx, o, os.Stdout))
}

func exit(err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "fleet: %v\n", err)
		return 1
	}
	return 0
}

// options are the command's flags.
type options struct {
	run   time.Duration
	redis string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.run, "for", 10*time.Second, "how `long` the run takes")
	flags.StringVar(&o.redis, "redis", "", "`address` of a Redis or Valkey (default: one is started)")
	if err = flags.Parse(args); err != nil {
		return o, err
	}
	if o.run <= 0 {
		err = fmt.Errorf("-for is %v, must be above 0", o.run)
	} else if flags.NArg() > 0 {
		err = fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "fleet: %v\n", err)
	}
	return o, err
}
