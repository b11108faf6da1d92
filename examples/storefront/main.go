// Command storefront shows what weir is for, in ten seconds: two shops beside each other lose their
// payment service for three seconds. They have the same customers and the same client. One of them
// calls the service through a gate of weir, and has an alert on it.
//
// The payment services are simulated in this process, in real time. The gate and the alert come
// from weir.yaml. A live page shows the gate at the address that is printed at the start.
//
//	storefront                            ten seconds, of which the service hangs for three
//	storefront -for 1m                    a minute, of which the service hangs for 18 seconds
//	storefront -drop                      the service drops calls whose callers have gone
//	storefront | tail -1                  only the figures, as JSON
//	storefront -admin-token secret        accept actions, such as another limit, at /admin/weir/
//
// Ctrl-C ends the run early and prints the figures so far.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
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
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "storefront: %v\n", err)
		return 1
	}
	return 0
}

// run runs the demo beside its live page.
func run(ctx context.Context, o options, out io.Writer) error {
	d, err := newDemo(o.run, o.drop, rand.Uint64())
	if err != nil {
		return err
	}
	defer d.close()
	w, err := newWeb(ctx, o.listen, o.token, d.guard.Set)
	if err != nil {
		return err
	}
	defer w.close()
	return d.run(ctx, w.pageURL(), out)
}

// options holds the flags.
type options struct {
	run    time.Duration
	drop   bool
	listen string
	token  string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("storefront", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.run, "for", 10*time.Second, "the `duration` of the run; the service hangs for three tenths of it")
	flags.BoolVar(&o.drop, "drop", false, "make the payment service drop calls whose callers have gone")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "the `address` of the live page /debug/weir/; port 0 means any free port")
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
		fmt.Fprintf(stderr, "storefront: %v\n", err)
	}
	return o, err
}
