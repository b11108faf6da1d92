package conformance_test

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// breakers and limiters use breakers and limiters at the times of a replay.
var (
	breakers = breaker.Inside(friend.Key{})
	limiters = limiter.Inside(friend.Key{})
)

// resilience4jReplayer replays Resilience4j's CircuitBreakerStateMachine with a Breaker. Weir
// decides about the calls. r4jReplay computes manual and timed transitions of the reference, with
// which weir has to agree.
var resilience4jReplayer = replaying("i now_ms op permit dur_ns class bad ms to for_ms", func(r *run, c r4jConfig) func(r4jStep) {
	config := c.breakerConfig()
	if config.Validate() != nil {
		r.skipRest(refusedRate)
		return nil
	}
	x := &r4jReplay{run: r, c: c, now: time.UnixMilli(c.Start), permits: map[int]*r4jPermit{}, ends: r4jFinishes(r.seq.Steps)}
	// windows of the reference are aligned to whole seconds
	x.weir = breakers.New("cb", config, x.now.Truncate(time.Second))
	breakers.ResetAt(x.weir, x.now)
	x.state, x.evidence = "CLOSED", x.window()
	x.force(c.Initial, nil)
	return x.step
}, checkR4jTrace)

// r4jReplay replays a sequence. It knows the state of the reference, and until when the timers of
// the reference keep that state.
type r4jReplay struct {
	*run
	c       r4jConfig
	now     time.Time
	weir    *breaker.Breaker
	permits map[int]*r4jPermit
	ends    map[int]r4jStep // the step that finishes each permit

	state   string
	epoch   int // how many states there have been
	entered time.Time
	until   time.Time
	probed  bool // a call passed when the state began
	attempt int
	events  []string

	evidence *window.Calls // the window while closed, which ages while open
	aging    bool
	told     [2]bool       // the thresholds of failures and of slow calls were announced
	refused  int64         // refused calls at the last step
	carried  int64         // in Open: the refused calls of the state before
	kept     window.Counts // in Open: the counts of the state before, if they do not age
	enough   int           // in Open: the fewest calls for which there was a rate
}

type r4jPermit struct {
	weir  breaker.Permit
	state string
	epoch int
	used  bool
}

// r4jFinishes finds the step that finishes each permit.
func r4jFinishes(steps []json.RawMessage) map[int]r4jStep {
	ends := map[int]r4jStep{}
	for _, raw := range slices.Backward(steps) {
		var s r4jStep
		if json.Unmarshal(raw, &s) != nil {
			continue
		}
		switch s.Op {
		case "success", "error", "result", "release":
			ends[s.Permit] = s
		}
	}
	return ends
}

func (x *r4jReplay) window() *window.Calls {
	if x.c.Window == "COUNT_BASED" {
		return nil
	}
	shape := window.CallsConfig{Span: time.Duration(x.c.Size) * time.Second, Buckets: x.c.Size, Slow: time.Duration(x.c.SlowCall)}
	return window.NewCallsAt(shape, x.now.Truncate(time.Second))
}

func (x *r4jReplay) step(s r4jStep) {
	if s.Now != x.now.UnixMilli() {
		x.mismatch("now_ms is %d, want %d", s.Now, x.now.UnixMilli())
		return
	}
	x.events = []string{}
	failed := ""
	switch s.Op {
	case "tryAcquire":
		x.acquire(s)
	case "success", "error", "result", "release":
		x.finish(s)
	case "advance":
		x.advance(s)
	case "transition":
		failed = x.transition(s)
	case "reset":
		x.reset()
	default:
		x.mismatch("op is %q", s.Op)
	}
	if x.stopped {
		return
	}
	if s.Op != "tryAcquire" {
		checkAbsent(x.run, "ok", s.OK)
	}
	if failed == "" {
		checkAbsent(x.run, "error", s.Error)
	} else {
		checkSame(x.run, "error", s.Error, failed)
	}
	x.compare(s)
}

func (x *r4jReplay) acquire(s r4jStep) {
	if x.state == "OPEN" && x.now.After(x.until) {
		x.enter("HALF_OPEN", x.now, 0)
	}
	var err error
	p := &r4jPermit{state: x.state, epoch: x.epoch}
	if p.weir, err = breakers.AllowAt(x.weir, x.now); err == nil {
		x.permits[s.I] = p
		x.probed = x.probed || x.state == "HALF_OPEN" && x.entered.Equal(x.now)
		x.backdate(s)
	} else if x.state != "FORCED_OPEN" {
		x.events = append(x.events, "NOT_PERMITTED")
	}
	checkSame(x.run, "ok", s.OK, err == nil)
}

// backdate acquires the permit again at such a time that the call takes as long as the trace says,
// because in some traces the durations are invented.
func (x *r4jReplay) backdate(s r4jStep) {
	end, ok := x.ends[s.I]
	if !ok {
		return
	}
	slow := time.Duration(x.c.SlowCall)
	done := time.UnixMilli(end.Now)
	if (done.Sub(x.now) > slow) == (time.Duration(end.Took) > slow) {
		return
	}
	start := done.Add(-time.Duration(end.Took))
	if x.state == "HALF_OPEN" && !x.until.IsZero() && !start.Before(x.until) {
		return // the state is over by then, and the result will not count
	}
	p := x.permits[s.I]
	breakers.RecordAt(&p.weir, x.now, breaker.Ignored)
	var err error
	if p.weir, err = breakers.AllowAt(x.weir, start); err != nil {
		x.mismatch("weir refuses at a different time: %v", err)
	}
}

func (x *r4jReplay) finish(s r4jStep) {
	p, ok := x.permits[s.Permit]
	idle := x.state == "FORCED_OPEN" || x.state == "DISABLED" // the reference ignores results
	if !ok || p.used {
		if !idle {
			x.skipRest(resultWithoutPermit)
		}
		return
	}
	p.used = true
	checkSame(x.run, "permit_state", s.PermitState, p.state)
	outcome, event := s.outcome()
	counted := breakers.RecordAt(&p.weir, x.now, outcome)
	switch late := p.epoch != x.epoch; {
	case idle:
		return
	case late && counted:
		x.mismatch("weir counts a result from an earlier state")
		return
	case late:
		x.skipRest(lateResult)
		return
	case !counted:
		x.mismatch("weir does not count a result")
		return
	}
	if event != "" {
		x.events = append(x.events, event)
	}
	if outcome != breaker.Ignored {
		x.judge(s, outcome)
	}
}

// outcome returns the outcome of a finished call and its event.
func (s r4jStep) outcome() (breaker.Outcome, string) {
	switch {
	case s.Op == "release":
		return breaker.Ignored, ""
	case s.Op == "error" && s.Class == "ignored":
		return breaker.Ignored, "IGNORED_ERROR"
	case s.Op == "error" && s.Class == "recorded", s.Op == "result" && s.Bad:
		return breaker.Failure, "ERROR"
	}
	return breaker.Success, "SUCCESS"
}

// judge follows the transition of weir after a result.
func (x *r4jReplay) judge(s r4jStep, outcome breaker.Outcome) {
	if x.evidence != nil {
		x.evidence.RecordAt(x.now, outcome, time.Duration(s.Took))
	}
	if x.state == "METRICS_ONLY" {
		x.addThresholdEvents(breakers.CountsAt(x.weir, x.now))
	}
	switch to := stateNames[breakers.StateAt(x.weir, x.now)]; {
	case to == x.state:
	case to == "OPEN":
		x.kept = breakers.CountsAt(x.weir, x.now)
		if x.state == "CLOSED" {
			x.addThresholdEvents(x.kept)
		}
		x.attempt++
		if x.c.isTruncated(x.attempt) {
			x.skipRest(backoffCut)
		}
		x.enter("OPEN", x.now, x.c.wait(x.attempt))
	default:
		x.enter(to, x.now, 0)
	}
}

func (x *r4jReplay) compare(s r4jStep) {
	checkSame(x.run, "state", s.State, x.state)
	weir := stateNames[breakers.StateAt(x.weir, x.now)]
	// the reference becomes half-open at the next call
	waits := x.state == "OPEN" && x.now.After(x.until)
	if weir != x.state && !waits {
		x.mismatch("weir is %s: %s", weir, x.seq.Steps[x.at])
		return
	}
	if weir != x.state {
		x.noteDivergence(halfOpenByClock)
	}
	c, enough := breakers.CountsAt(x.weir, x.now), x.minCalls(x.state)
	switch x.state {
	case "OPEN":
		refused := x.carried + c.Refused
		if waits {
			// weir counts from 0, because it is half-open, and the reference refuses no more
			refused = x.refused
		}
		if c = x.kept; x.aging {
			c = x.evidence.CountsAt(x.now)
		}
		c.Refused, enough = refused, x.enough
	case "FORCED_OPEN", "DISABLED":
		c = window.Counts{Refused: c.Refused}
	}
	x.refused = c.Refused
	checkSame(x.run, "buffered", s.Buffered, c.Calls())
	checkSame(x.run, "successful", s.Successful, c.Successes)
	checkSame(x.run, "failed", s.Failed, c.Failures)
	checkSame(x.run, "slow", s.SlowCalls, c.Slow)
	checkSame(x.run, "slow_failed", s.SlowFailed, c.SlowFailures)
	checkSame(x.run, "not_permitted", s.NotPermitted, c.Refused)
	failure, slow := float32(-1), float32(-1)
	if c.Calls() >= int64(enough) {
		failure, slow = percent(c.Failures, c.Calls()), percent(c.Slow, c.Calls())
	}
	checkSameRate(x.run, "failure_rate", s.FailureRate, failure)
	checkSameRate(x.run, "slow_rate", s.SlowRate, slow)
	checkSame(x.run, "events", s.Events, x.events)
}
