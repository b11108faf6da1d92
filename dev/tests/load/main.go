// Command load sends real requests through weirhttp over loopback. It measures the cost, and checks
// that limits hold and that nothing is left behind.
//
//	go run -C dev/tests ./load                   about a minute
//	go run -C dev/tests ./load -duration 1s      a few seconds
//
// It runs a server and a client with weir and without, in alternating slices, so that the machine
// is the same for both. It offers three times as many requests as a limit allows, and compares the
// number allowed with the expected one, including the burst. It looks for goroutines, connections
// and permits that are left behind. It fails if the allowed number is off by more than 1 %, or if
// anything is left. If the machine is so busy that requests are late, fewer may be allowed: as many
// as a token bucket allows if each request reaches it at the moment at which it was sent.
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
	flag.DurationVar(&c.duration, "duration", 10*time.Second, "duration of each of the six runs")
	flag.IntVar(&c.workers, "workers", 16, "requests in flight")
	flag.BoolVar(&c.http2, "http2", false, "use HTTP/2 instead of HTTP/1.1")
	flag.Parse()
	if err := c.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config configures the runs.
type config struct {
	duration time.Duration
	workers  int
	http2    bool
}

// run does all runs and prints a table of each kind. Its error joins everything that is wrong.
func (c config) run(out io.Writer) error {
	before := countGoroutines()
	fmt.Fprintf(out, "%-24s %9s %9s %10s %10s\n", "with and without weir", "requests", "per s", "p50", "p99")
	for _, pair := range [][2]*loadServer{
		{c.bareServer("server, bare"), c.guardedServer("server, weir")},
		{c.bareServer("client, bare"), c.guardedClient("client, weir")},
	} {
		if err := c.compare(out, pair); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%-24s %9s %9s %9s %8s\n", "a limit of 300/s", "offered", "allowed", "expected", "off by")
	for _, r := range []*loadServer{c.limitedServer("server, Limit"), c.limitedClient("client, Transport")} {
		if err := c.measure(out, r); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	return before.compare(out)
}
