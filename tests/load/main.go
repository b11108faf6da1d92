// Load drives weirhttp with real requests over loopback, and says what it costs and whether it keeps its word.
//
//	go run -C tests ./load                   about a minute
//	go run -C tests ./load -duration 1s      a look
//
// It compares a server and a client with weir and without, a slice of the one after a slice of the other, so that both
// see the same machine; it offers three times what a limit admits, and compares what was admitted with what should
// have been, burst and all; and it looks for goroutines, connections and permits that were left behind. It fails if the
// admitted rate is off by more than 1 %, or if anything is left.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	var c config
	flag.DurationVar(&c.duration, "duration", 10*time.Second, "how long each of the six runs takes")
	flag.IntVar(&c.workers, "workers", 16, "how many requests are out at once")
	flag.BoolVar(&c.http2, "http2", false, "use HTTP/2 in the place of HTTP/1.1")
	flag.Parse()
	if err := c.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config says what is run.
type config struct {
	duration time.Duration
	workers  int
	http2    bool
}

// run does all runs and prints a table of each kind. Its error says what must not be.
func (c config) run(out io.Writer) error {
	before := look()
	fmt.Fprintf(out, "%-24s %9s %9s %10s %10s\n", "one beside the other", "requests", "each s", "p50", "p99")
	for _, pair := range [][2]*rig{
		{c.bareServer("server, bare"), c.guardedServer("server, weir")},
		{c.bareServer("client, bare"), c.guardedClient("client, weir")},
	} {
		if err := c.compare(out, pair); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%-24s %9s %9s %9s %8s\n", "a limit of 300/s", "offered", "admitted", "expected", "off by")
	for _, r := range []*rig{c.limitedServer("server, Limit"), c.limitedClient("client, Transport")} {
		if err := c.measure(out, r); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	return before.compare(out, look())
}
