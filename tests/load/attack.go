package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// slices is into how many parts the runs of a pair are cut.
const slices = 10

// tally is what a rig has answered.
type tally struct {
	metrics  vegeta.Metrics
	requests int
	admitted int
	busy     time.Duration
}

// attack sends requests to the rig for a while and books what comes back.
func (c config) attack(r *rig, pacer vegeta.Pacer, d time.Duration, into *tally) {
	workers := uint64(c.workers)
	attacker := vegeta.NewAttacker(vegeta.Client(r.client), vegeta.Workers(workers), vegeta.MaxWorkers(workers))
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodGet, URL: r.url})
	start := time.Now()
	for result := range attacker.Attack(target, pacer, d, r.name) {
		into.metrics.Add(result)
		into.requests++
		if result.Code == http.StatusOK {
			into.admitted++
		}
	}
	into.busy += time.Since(start)
}

// compare runs a pair as fast as it goes, in slices by turns.
func (c config) compare(out io.Writer, pair [2]*rig) error {
	var tallies [2]tally
	for range slices {
		for i, r := range pair {
			c.attack(r, vegeta.Rate{}, c.duration/slices, &tallies[i])
		}
	}
	var faults []error
	var each [2]float64
	for i, r := range pair {
		t := &tallies[i]
		t.metrics.Close()
		each[i] = float64(t.requests) / t.busy.Seconds()
		fmt.Fprintf(out, "%-24s %9d %9.0f %10v %10v\n", r.name, t.requests, each[i],
			t.metrics.Latencies.P50.Round(time.Microsecond), t.metrics.Latencies.P99.Round(time.Microsecond))
		if t.admitted != t.requests {
			faults = append(faults, fmt.Errorf("%s: %d of %d requests failed: %v", r.name, t.requests-t.admitted, t.requests, t.metrics.Errors))
		}
		faults = append(faults, r.close())
	}
	fmt.Fprintf(out, "%-24s %29.3f\n", "weir / bare", each[1]/each[0])
	return errors.Join(faults...)
}

// tolerance is by how much the admitted number may be off.
const tolerance = 0.01

// measure offers three times what the limit admits.
func (c config) measure(out io.Writer, r *rig) error {
	var t tally
	c.attack(r, vegeta.Rate{Freq: 3 * rate, Per: time.Second}, c.duration, &t)
	expected := burst + rate*t.metrics.Latest.Sub(t.metrics.Earliest).Seconds()
	off := float64(t.admitted)/expected - 1
	fmt.Fprintf(out, "%-24s %9d %9d %9.0f %7.2f%%\n", r.name, t.requests, t.admitted, expected, 100*off)
	err := r.close()
	if math.Abs(off) > tolerance {
		err = errors.Join(err, fmt.Errorf("%s: %d were admitted, must be %.0f within 1 %%", r.name, t.admitted, expected))
	}
	return err
}

// left is what a process has running.
type left struct{ goroutines int }

func look() left { return left{runtime.NumGoroutine()} }

// compare waits a moment for what is on its way out, and says what is left of a run.
func (before left) compare(out io.Writer, after left) error {
	for wait := time.Millisecond; after.goroutines > before.goroutines && wait < time.Second; wait *= 2 {
		<-time.After(wait)
		after = look()
	}
	fmt.Fprintf(out, "goroutines: %d before, %d after; connections and permits left: none\n", before.goroutines, after.goroutines)
	if after.goroutines > before.goroutines {
		stacks := make([]byte, 1<<16)
		return fmt.Errorf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return nil
}
