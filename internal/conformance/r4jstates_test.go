package conformance_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// The functions of this file apply manual and timed transitions to the model of the reference.
// These transitions do not depend on weir.

// enter puts the reference into another state.
func (x *r4jReplay) enter(state string, at time.Time, wait int64) {
	before := x.state
	if before != state {
		x.events = append(x.events, fmt.Sprintf("STATE_TRANSITION:%s->%s", before, state))
	}
	x.state, x.entered, x.until, x.probed = state, at, time.Time{}, false
	x.epoch++
	if state != "OPEN" {
		x.refused = 0
	}
	switch state {
	case "CLOSED", "METRICS_ONLY":
		x.attempt = 0
		x.evidence = x.window()
		x.told = [2]bool{}
	case "OPEN":
		x.carried = x.refused
		x.until = at.Add(time.Duration(wait) * time.Millisecond)
		if before != "OPEN" {
			x.aging = before == "CLOSED" && x.evidence != nil
			x.enough = x.minCalls(before)
		}
	case "HALF_OPEN":
		if x.c.HalfOpen > 0 {
			x.until = at.Add(time.Duration(x.c.HalfOpen) * time.Millisecond)
		}
	}
}

// minCalls returns the fewest calls for which a state has a rate.
func (x *r4jReplay) minCalls(state string) int {
	switch {
	case state == "HALF_OPEN":
		return min(x.c.MinCalls, x.c.Probes)
	case x.c.Window == "COUNT_BASED":
		return min(x.c.MinCalls, x.c.Size)
	}
	return x.c.MinCalls
}

// addThresholdEvents adds the events of the thresholds that were reached, each once.
func (x *r4jReplay) addThresholdEvents(c window.Counts) {
	if c.Calls() < int64(x.minCalls(x.state)) {
		return
	}
	if rate := percent(c.Failures, c.Calls()); rate >= float32(x.c.Failure) && !x.told[0] {
		x.told[0] = true
		x.events = append(x.events, "FAILURE_RATE_EXCEEDED:"+javaFloat(rate))
	}
	if rate := percent(c.Slow, c.Calls()); rate >= float32(x.c.Slow) && !x.told[1] {
		x.told[1] = true
		x.events = append(x.events, "SLOW_CALL_RATE_EXCEEDED:"+javaFloat(rate))
	}
}

// advance moves the clock, and makes the transitions that the timers of the reference cause.
func (x *r4jReplay) advance(s r4jStep) {
	if s.Advance < 0 {
		x.skipRest(clockBack)
		return
	}
	end := x.now.Add(time.Duration(s.Advance) * time.Millisecond)
	for !x.until.IsZero() && !x.until.After(end) && !x.stopped {
		at := x.until
		switch {
		case x.state == "OPEN" && x.c.Automatic:
			x.enter("HALF_OPEN", at, 0)
		case x.state == "HALF_OPEN":
			x.giveUp(at)
		default:
			x.now = end
			return
		}
	}
	x.now = end
}

// giveUp ends a half-open time without a verdict.
func (x *r4jReplay) giveUp(at time.Time) {
	switch {
	case x.c.Then == "CLOSED":
		x.skipRest(closedWithoutVerdict)
	case x.c.Factor > 0:
		x.skipRest(halfOpenBackoff)
	case !x.probed:
		x.skipRest(idleTimeout)
	default:
		x.kept = breakers.CountsAt(x.weir, at.Add(-1))
		x.enter("OPEN", at, x.c.Wait)
	}
}

func (x *r4jReplay) transition(s r4jStep) (failed string) {
	if x.state == "METRICS_ONLY" && (s.To == "OPEN" || s.To == "HALF_OPEN") || x.state == "CLOSED" && s.To == "HALF_OPEN" {
		return fmt.Sprintf("IllegalStateTransitionException: CircuitBreaker 'cb' tried an illegal state transition from %s to %s", x.state, s.To)
	}
	if x.c.Factor > 0 && (s.To == "OPEN" && x.state != "CLOSED" || s.To == "HALF_OPEN" && x.state != "OPEN") {
		x.skipRest(manualBackoff)
		return ""
	}
	x.force(s.To, s.For)
	return ""
}

// force puts weir and the reference into a state manually.
func (x *r4jReplay) force(to string, forMillis *int64) {
	before := breakers.CountsAt(x.weir, x.now)
	breakers.ReleaseAt(x.weir, x.now)
	wait := int64(0)
	switch to {
	case "CLOSED":
		breakers.ResetAt(x.weir, x.now)
	case "OPEN":
		x.attempt++
		if wait = x.c.wait(x.attempt); forMillis != nil {
			wait = *forMillis
		}
		if x.state != "OPEN" {
			x.kept = before
		}
		breakers.OpenForAt(x.weir, x.now, x.c.weirWait(wait))
	case "HALF_OPEN":
		breakers.OpenForAt(x.weir, x.now, 0)
	default:
		breakers.ForceAt(x.weir, x.now, overrides[to])
	}
	x.enter(to, x.now, wait)
}

func (x *r4jReplay) reset() {
	if !x.until.IsZero() && (x.c.Automatic || x.state == "HALF_OPEN") {
		x.skipRest(staleTimer)
		return
	}
	x.force("CLOSED", nil)
	x.events = append(x.events, "RESET")
}

var stateNames = map[breaker.State]string{
	breaker.Closed: "CLOSED", breaker.Open: "OPEN", breaker.HalfOpen: "HALF_OPEN",
	breaker.ForcedOpen: "FORCED_OPEN", breaker.Disabled: "DISABLED", breaker.Shadow: "METRICS_ONLY",
}

var overrides = map[string]breaker.State{"FORCED_OPEN": breaker.ForcedOpen, "DISABLED": breaker.Disabled, "METRICS_ONLY": breaker.Shadow}
