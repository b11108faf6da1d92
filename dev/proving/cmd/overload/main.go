// Command overload sends real HTTP requests to real servers on loopback that differ in what stands
// before their handler, and prints how many requests they answer and how late. The handler can
// answer a certain number of requests per second, and gets three times as many:
//
//	go run -C dev/proving ./cmd/overload
//	go run -C dev/proving ./cmd/overload -for 30s -factor 1.5
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	factor  float64
	warm    time.Duration
	length  time.Duration
	timeout time.Duration
	only    string
}

func run(args []string, w io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.Float64Var(&s.factor, "factor", 3, "the rate of requests, divided by what the handler can do")
	flags.DurationVar(&s.length, "for", 15*time.Second, "the duration of the load on each server")
	flags.DurationVar(&s.warm, "warm", 5*time.Second, "the duration of half of the possible load, before")
	flags.DurationVar(&s.timeout, "timeout", time.Second, "how long clients wait for an answer")
	flags.StringVar(&s.only, "only", "", "test only the guards whose names contain this")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !(s.factor > 0 && s.factor < 1000) || s.length <= 0 || s.timeout <= 0 || s.warm < 0 {
		return fmt.Errorf("-factor is %v, -for %v, -timeout %v and -warm %v, must be positive", s.factor, s.length, s.timeout, s.warm)
	}
	return compare(context.Background(), w, s)
}

// compare prints a row per guard.
func compare(ctx context.Context, w io.Writer, s settings) error {
	fmt.Fprintf(w, "The handler can do %.0f requests/s: %d at once, %v each on average. It is asked for %.0f/s for %v, after %.0f/s for %v.\n",
		capacity, servers, work, s.factor*capacity, s.length, capacity/2, s.warm)
	fmt.Fprintf(w, "Good is the share of what the handler can do that was answered within %v.\n\n", s.timeout)
	fmt.Fprintf(w, "%-44s %6s %8s %8s %8s %9s %9s\n", "guard", "good", "answered", "refused", "failed", "p50", "p99")
	for _, g := range guards() {
		if !strings.Contains(g.name, s.only) {
			continue
		}
		handler, err := g.wrap(newBackend())
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		r, err := attack(ctx, handler, s)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		fmt.Fprintf(w, "%-44s %5.0f%% %8d %8d %8d %9v %9v\n", g.name, 100*float64(r.good())/(capacity*s.length.Seconds()),
			r.good(), r.refused, r.failed, r.quantile(0.5).Round(100*time.Microsecond), r.quantile(0.99).Round(100*time.Microsecond))
	}
	return nil
}
