package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// partsPerRun is the number of alternating parts of the two runs of a pair.
const partsPerRun = 10

// responseCounts are the responses of a rig.
type responseCounts struct {
	metrics  vegeta.Metrics
	requests int
	allowed  int
	sent     []time.Time
	busy     time.Duration
}

// attack sends requests to the rig for the duration, and counts the responses.
func (c config) attack(r *loadServer, pacer vegeta.Pacer, d time.Duration, into *responseCounts) {
	workers := uint64(c.workers)
	attacker := vegeta.NewAttacker(vegeta.Client(r.client), vegeta.Workers(workers), vegeta.MaxWorkers(workers))
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodGet, URL: r.url})
	start := time.Now()
	for result := range attacker.Attack(target, pacer, d, r.name) {
		into.metrics.Add(result)
		into.requests++
		into.sent = append(into.sent, result.Timestamp)
		if result.Code == http.StatusOK {
			into.allowed++
		}
	}
	into.busy += time.Since(start)
}

// compare runs a pair as fast as possible, in alternating slices.
func (c config) compare(out io.Writer, pair [2]*loadServer) error {
	var results [2]responseCounts
	for range partsPerRun {
		for i, r := range pair {
			c.attack(r, vegeta.Rate{}, c.duration/partsPerRun, &results[i])
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

// tolerance is the allowed relative error of the number of allowed requests.
const tolerance = 0.01

// measure offers three times as many requests as the limit allows. On a busy machine requests are
// sent late, and reach the limit later still. A bucket that is full meanwhile loses the tokens that
// it cannot hold.
func (c config) measure(out io.Writer, r *loadServer) error {
	var t responseCounts
	c.attack(r, vegeta.Rate{Freq: 3 * rate, Per: time.Second}, c.duration, &t)
	most := burst + rate*t.metrics.Latest.Sub(t.metrics.Earliest).Seconds()
	least := t.fewestAllowed() - rate*t.metrics.Latencies.Max.Seconds()
	fmt.Fprintf(out, "%-24s %9d %9d %9.0f %7.2f%%\n", r.name, t.requests, t.allowed, most, 100*(float64(t.allowed)/most-1))
	err := r.close()
	if n := float64(t.allowed); n > (1+tolerance)*most || n < (1-tolerance)*least {
		err = errors.Join(err, fmt.Errorf("%s: %d requests allowed, want %.0f to %.0f within 1 %%", r.name, t.allowed, least, most))
	}
	return err
}

// fewestAllowed returns how many requests a token bucket allows if each reaches it at the moment at
// which it is sent.
func (t *responseCounts) fewestAllowed() (n float64) {
	slices.SortFunc(t.sent, time.Time.Compare)
	tokens := float64(burst)
	for i, at := range t.sent {
		if i > 0 {
			tokens = min(burst, tokens+rate*at.Sub(t.sent[i-1]).Seconds())
		}
		if tokens >= 1 {
			tokens--
			n++
		}
	}
	return n
}

// goroutineCount is the number of goroutines before the runs.
type goroutineCount int

func countGoroutines() goroutineCount { return goroutineCount(runtime.NumGoroutine()) }

// compare returns an error if there are more goroutines now. It waits a moment for those that are
// ending.
func (before goroutineCount) compare(out io.Writer) error {
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
