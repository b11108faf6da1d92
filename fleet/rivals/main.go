// Program rivals measures limiters on Redis beside each other, in one run on one real
// redis-server over a unix socket, and prints a table: decisions a second and how long one
// takes, with 1, 8 and 64 callers, as medians of rounds in which all take turns.
//
//	go run -C fleet/rivals . -rounds 7 -time 500ms
//
// Each caller has a key of its own, and enough permits that none is refused, but where a row is
// about one key that is always refused. It needs redis-server.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 5, "how many rounds")
	span := flag.Duration("time", 300*time.Millisecond, "how long each is measured in a round")
	only := flag.String("only", "", "measure only those whose names contain this, and the first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *span, *only); err != nil {
		slog.Error("cannot measure", "error", err)
	}
}

func run(ctx context.Context, rounds int, span time.Duration, only string) error {
	client, stop, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer stop()
	all, err := contenders(ctx, client)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(c contender) bool { return c.name != all[0].name && !strings.Contains(c.name, only) })
	for _, callers := range []int{1, 8, 64} {
		measured := make([][]sample, len(all))
		for range rounds {
			for i, c := range all {
				s, err := measure(ctx, c, callers, span)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				measured[i] = append(measured[i], s)
			}
		}
		if err := show(callers, all, measured); err != nil {
			return err
		}
	}
	return nil
}

// show prints the part of the table for so many callers.
func show(callers int, all []contender, measured [][]sample) error {
	var table strings.Builder
	fmt.Fprintf(&table, "%7s %12s %10s %10s %12s\n", "callers", "decisions/s", "p50", "p99", "× the first")
	for i, c := range all {
		m := measured[i]
		fmt.Fprintf(&table, "%7d %12.0f %10s %10s %12.2f  %s\n", callers, perSecond(m), p50(m), p99(m), ratio(m, measured[0]), c.name)
	}
	_, err := os.Stdout.WriteString(table.String() + "\n")
	return err
}
