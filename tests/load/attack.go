package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// slices is the number of alternating parts of the two runs of a pair.
const slices = 10

// answers are the responses of a rig.
type answers struct {
	metrics  vegeta.Metrics
	requests int
	allowed  int
	busy     time.Duration
}

// attack sends requests to the rig for the duration, and counts the responses.
func (c config) attack(r *loadServer, pacer vegeta.Pacer, d time.Duration, into *answers) {
	workers := uint64(c.workers)
	attacker := vegeta.NewAttacker(vegeta.Client(r.client), vegeta.Workers(workers), vegeta.MaxWorkers(workers))
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodGet, URL: r.url})
	start := time.Now()
	for result := range attacker.Attack(target, pacer, d, r.name) {
		into.metrics.Add(result)
		into.requests++
		if result.Code == http.StatusOK {
			into.allowed++
		}
	}
	into.busy += time.Since(start)
}

// compare runs a pair as fast as possible, in alternating slices.
func (c config) compare(out io.Writer, pair [2]*loadServer) error {
	var results [2]answers
	for range slices {
		for i, r := range pair {
			c.attack(r, vegeta.Rate{}, c.duration/slices, &results[i])
		}
	}
	var faults []error
	var perSecond [2]float64
	for i, r := range pair {
		t := &results[i]
		t.metrics.Close()
		perSecond[i] = float64(t.requests) / t.busy.Seconds()
		fmt.Fprintf(out, "%-24s %9d %9.0f %10v %10v\n", r.name, t.requests, perSecond[i],
			t.metrics.Latencies.P50.Round(time.Microsecond), t.metrics.Latencies.P99.Round(time.Microsecond))
		if t.allowed != t.requests {
			faults = append(faults, fmt.Errorf("%s: %d of %d requests failed: %v", r.name, t.requests-t.allowed, t.requests, t.metrics.Errors))
		}
		faults = append(faults, r.close())
	}
	fmt.Fprintf(out, "%-24s %29.3f\n", "weir / bare", perSecond[1]/perSecond[0])
	return errors.Join(faults...)
}

// tolerance is the most by which the allowed number may be off.
const tolerance = 0.01

// measure offers three times as many requests as the limit allows. While the machine offers none, a full bucket loses
// the tokens that it cannot hold, so fewer requests than expected are a fault only if all were offered.
func (c config) measure(out io.Writer, r *loadServer) error {
	var t answers
	c.attack(r, vegeta.Rate{Freq: 3 * rate, Per: time.Second}, c.duration, &t)
	expected := burst + rate*t.metrics.Latest.Sub(t.metrics.Earliest).Seconds()
	off := float64(t.allowed)/expected - 1
	fmt.Fprintf(out, "%-24s %9d %9d %9.0f %7.2f%%\n", r.name, t.requests, t.allowed, expected, 100*off)
	err := r.close()
	offeredAll := float64(t.requests) >= (1-tolerance)*3*rate*c.duration.Seconds()
	if off > tolerance || off < -tolerance && offeredAll {
		err = errors.Join(err, fmt.Errorf("%s: %d requests allowed, want %.0f within 1 %%", r.name, t.allowed, expected))
	}
	return err
}

// goroutines is the number of goroutines before the runs.
type goroutines int

func countGoroutines() goroutines { return goroutines(runtime.NumGoroutine()) }

// compare returns an error if there are more goroutines now. It waits a moment for those that are ending.
func (before goroutines) compare(out io.Writer) error {
	after := countGoroutines()
	for wait := time.Millisecond; after > before && wait < time.Second; wait *= 2 {
		<-time.After(wait)
		after = countGoroutines()
	}
	fmt.Fprintf(out, "goroutines: %d before, %d after; connections and permits left: none\n", before, after)
	if after > before {
		stacks := make([]byte, 1<<16)
		return fmt.Errorf("goroutines left:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return nil
}
