package conformance_test

import (
	"math"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

type gbConfig struct {
	Name     string  `json:"name"`
	Max      int     `json:"max_requests"`     // 0 means 1
	Interval int64   `json:"interval_ns"`      // 0 means forever
	Bucket   int64   `json:"bucket_period_ns"` // 0 means one window that is cleared at once
	Timeout  int64   `json:"timeout_ns"`       // 0 means 60 s
	Trip     string  `json:"trip"`
	N        int     `json:"trip_n"`
	Requests int64   `json:"trip_min_requests"`
	Ratio    float64 `json:"trip_ratio"`
}

type gbStep struct {
	I      int    `json:"i"`
	At     int64  `json:"at_ns"` // since the breaker was made
	Op     string `json:"op"`
	Sleep  int64  `json:"ns"`
	Ref    int    `json:"ref"` // the step of its allow
	Result string `json:"result"`

	OK       *bool     `json:"ok"`
	Error    *string   `json:"error"`
	StateOut *string   `json:"state_out"`
	State    *string   `json:"state"`
	Counts   *[]int64  `json:"counts"`
	Events   *[]string `json:"events"`
	Asked    *[]gbTrip `json:"ready_to_trip_calls"`
}

type gbTrip struct {
	Counts []int64 `json:"counts"`
	Trip   bool    `json:"trip"`
}

// gobreakerReplayer replays sony/gobreaker's TwoStepCircuitBreaker.
var gobreakerReplayer = replaying("i at_ns op ns ref result", func(r *run, c gbConfig) func(gbStep) {
	g := &gbReplay{run: r, c: c, permits: map[int]*breaker.Permit{}, shown: "closed"}
	if c.Bucket > 0 {
		r.skipRest(bucketOfStart)
		return nil
	}
	config := g.config()
	if config.Validate() != nil {
		r.skipRest(refusedRate)
		return nil
	}
	g.weir = breakers.New("gb", config, nanoTime(0))
	g.clears = c.Interval
	return g.step
}, checkGbTrace)

// maxWindow is the longest window over time.
const maxWindow = 30 * 24 * time.Hour

func (g *gbReplay) config() breaker.Config {
	c := g.c
	probes := max(c.Max, 1)
	config := breaker.Config{
		FailureRun:  breaker.Off,
		FailureRate: breaker.Off, MinCalls: probes, Window: maxWindow, Buckets: int(maxWindow / time.Hour),
		Recovery: breaker.Off,
		// the reference acts after the time, not at it
		Cooldown: time.Duration(c.Timeout) + 1, Probes: probes, ProbeTimeout: math.MaxInt64,
	}
	if c.Timeout == 0 {
		config.Cooldown = time.Minute + 1
	}
	switch c.Trip {
	case "default":
		config.ConsecutiveFailures = 6
	case "consecutive":
		config.ConsecutiveFailures = c.N
	case "total":
		config.Trip = func(c window.Counts) (string, bool) { return "total", c.Failures >= int64(g.c.N) }
	case "ratio":
		config.Trip = func(c window.Counts) (string, bool) { return "ratio", g.ratio(c) }
	}
	return config
}

// gbReplay replays a sequence. The reference makes a due transition at its next use, and counts
// calls when they begin.
type gbReplay struct {
	*run
	c       gbConfig
	weir    *breaker.Breaker
	permits map[int]*breaker.Permit

	shown  string
	clears int64 // when the next use clears the window, 0 means never
	events []string

	// since the state was entered: begun, excluded, consecutive successes
	requests, excluded, streak int64
	failing                    bool // the result being recorded is a failure
}

// ratio is the rule trip_ratio, which is evaluated after failures only and includes calls in
// flight.
func (g *gbReplay) ratio(c window.Counts) bool {
	return g.failing && g.requests >= g.c.Requests && float64(c.Failures)/float64(g.requests) >= g.c.Ratio
}

func (g *gbReplay) now(s gbStep) time.Time { return nanoTime(s.At) }

func (g *gbReplay) step(s gbStep) {
	if s.At > int64(maxWindow-time.Hour) {
		g.skipRest(refusedWindow) // the reference never forgets a call, but weir would from now on
		return
	}
	g.events = []string{}
	if s.Op != "sleep" {
		g.makeDueTransitions(s)
	}
	switch s.Op {
	case "sleep":
	case "state":
		checkSame(g.run, "state_out", s.StateOut, g.shown)
	case "allow":
		g.allow(s)
	case "done":
		g.done(s)
	default:
		g.mismatch("op is %q", s.Op)
	}
	checkSame(g.run, "state", s.State, g.shown)
	checkSame(g.run, "events", s.Events, g.events)
	g.counts(s)
}

// makeDueTransitions makes the transitions that are due.
func (g *gbReplay) makeDueTransitions(s gbStep) {
	if g.shown == "closed" && g.clears > 0 && s.At > g.clears {
		breakers.ResetAt(g.weir, g.now(s))
		g.begin(s)
	}
	g.follow(s)
}

// follow notes a transition of weir.
func (g *gbReplay) follow(s gbStep) {
	state := map[breaker.State]string{breaker.Closed: "closed", breaker.Open: "open", breaker.HalfOpen: "half-open"}[breakers.StateAt(g.weir, g.now(s))]
	if state == g.shown {
		return
	}
	g.events = append(g.events, g.shown+"->"+state)
	g.shown = state
	g.begin(s)
}

func (g *gbReplay) begin(s gbStep) {
	g.requests, g.excluded, g.streak, g.clears = 0, 0, 0, 0
	if g.shown == "closed" && g.c.Interval > 0 {
		g.clears = s.At + g.c.Interval
	}
}

func (g *gbReplay) allow(s gbStep) {
	permit := new(breaker.Permit)
	var err error
	*permit, err = breakers.AllowAt(g.weir, g.now(s))
	checkSame(g.run, "ok", s.OK, err == nil)
	if err == nil {
		g.permits[s.I] = permit
		g.requests++
		checkAbsent(g.run, "error", s.Error)
		return
	}
	text := "circuit breaker is open"
	if g.shown == "half-open" {
		text = "too many requests"
	}
	checkSame(g.run, "error", s.Error, text)
}

func (g *gbReplay) done(s gbStep) {
	permit, ok := g.permits[s.Ref]
	if !ok {
		g.skipRest(resultWithoutPermit)
		return
	}
	g.failing = s.Result == "failure"
	before := breakers.CountsAt(g.weir, g.now(s))
	counted := breakers.RecordAt(permit, g.now(s), map[string]breaker.Outcome{"success": breaker.Success, "failure": breaker.Failure, "excluded": breaker.Ignored}[s.Result])
	asked := []gbTrip{}
	if counted {
		asked = g.count(s, before)
	}
	g.follow(s)
	if len(asked) == 0 {
		checkAbsent(g.run, "ready_to_trip_calls", s.Asked)
	} else {
		checkSame(g.run, "ready_to_trip_calls", s.Asked, asked)
	}
}

// count updates the counts that weir does not have, and returns the calls that the reference makes
// to the trip rule.
func (g *gbReplay) count(s gbStep, before window.Counts) (asked []gbTrip) {
	switch s.Result {
	case "excluded":
		g.excluded++
	case "success":
		g.streak++
	case "failure":
		g.streak = 0
		if g.shown == "closed" && g.c.Trip != "default" {
			// calls of the default rule were not recorded
			counts := []int64{g.requests, before.Successes, before.Failures + 1, g.excluded, 0, before.ConsecutiveFailures + 1}
			asked = append(asked, gbTrip{counts, breakers.StateAt(g.weir, g.now(s)) == breaker.Open})
		}
	}
	return asked
}

func (g *gbReplay) counts(s gbStep) {
	want := make([]int64, 6)
	if g.shown != "open" {
		c := breakers.CountsAt(g.weir, g.now(s))
		want = []int64{g.requests, c.Successes, c.Failures, g.excluded, g.streak, c.ConsecutiveFailures}
	}
	checkSame(g.run, "counts", s.Counts, want)
}
