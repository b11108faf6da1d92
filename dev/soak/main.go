package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

func main() { os.Exit(command()) }

// command returns the exit status.
func command() int {
	length := flag.Duration("for", 10*time.Minute, "how `long` to run")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random choices")
	flag.Parse()
	logging.Disable() // go-redis logs every failed command of a killed server
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("soak: %v, seed %d\n", *length, *seed)
	faults, report := soak(ctx, *length, *seed)
	fmt.Println(report)
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, "soak: FAULT:", f)
	}
	if len(faults) > 0 {
		return 1
	}
	return 0
}
