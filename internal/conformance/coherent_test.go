package conformance_test

import (
	"slices"
	"strings"
)

// The functions here check that the trace of a breaker is consistent, also where weir skips it: the
// state, the counts and the events of a step have to agree with each other and with the step
// before.

func checkR4jTrace(r *run, c r4jConfig) func(r4jStep) {
	state, refused := c.Initial, int64(0)
	return func(s r4jStep) {
		if r.stopped {
			return
		}
		if s.Events == nil || s.Buffered == nil || s.Successful == nil || s.Failed == nil || s.SlowCalls == nil || s.SlowFailed == nil || s.NotPermitted == nil {
			r.mismatch("an output is missing: %s", r.seq.Steps[r.at])
			return
		}
		before := state
		state = followTransitions(r, state, "STATE_TRANSITION:", *s.Events)
		checkSame(r, "state", s.State, state)
		checkSame(r, "buffered", s.Buffered, *s.Successful+*s.Failed)
		if *s.SlowFailed > min(*s.SlowCalls, *s.Failed) || *s.SlowCalls-*s.SlowFailed > *s.Successful {
			r.mismatch("slow calls do not add up: %s", r.seq.Steps[r.at])
		}
		checkR4jRates(r, s)
		checkR4jRefusal(r, s, before, refused)
		refused = *s.NotPermitted
	}
}

func checkR4jRates(r *run, s r4jStep) {
	if s.FailureRate != nil && *s.FailureRate == -1 {
		checkSameRate(r, "slow_rate", s.SlowRate, -1)
		return
	}
	checkSameRate(r, "failure_rate", s.FailureRate, percent(*s.Failed, *s.Buffered))
	checkSameRate(r, "slow_rate", s.SlowRate, percent(*s.SlowCalls, *s.Buffered))
}

func checkR4jRefusal(r *run, s r4jStep, before string, refused int64) {
	if s.Op != "tryAcquire" {
		checkAbsent(r, "ok", s.OK)
		return
	}
	said := slices.Contains(*s.Events, "NOT_PERMITTED")
	checkSame(r, "ok", s.OK, !said && before != "FORCED_OPEN")
	if s.OK != nil && !*s.OK {
		checkSame(r, "not_permitted", s.NotPermitted, refused+1)
	}
}

func checkGbTrace(r *run, _ gbConfig) func(gbStep) {
	state, counts := "closed", make([]int64, 6)
	return func(s gbStep) {
		if r.stopped {
			return
		}
		if s.Events == nil || s.Counts == nil || len(*s.Counts) != 6 {
			r.mismatch("an output is missing: %s", r.seq.Steps[r.at])
			return
		}
		before := state
		state = followTransitions(r, state, "", *s.Events)
		checkSame(r, "state", s.State, state)
		switch s.Op {
		case "state":
			checkSame(r, "state_out", s.StateOut, state)
		case "sleep":
			checkSame(r, "counts", s.Counts, counts)
		case "allow":
			checkGbAllow(r, s, state)
		case "done":
			checkGbDone(r, s, before)
		}
		counts = *s.Counts
		sum := counts[1] + counts[2] + counts[3]
		if state == "open" && slices.Max(counts) > 0 || sum > counts[0] || min(counts[4], counts[5]) > 0 {
			r.mismatch("counts do not add up: %s", r.seq.Steps[r.at])
		}
	}
}

func checkGbAllow(r *run, s gbStep, state string) {
	switch {
	case s.OK != nil && *s.OK && state != "open":
		checkAbsent(r, "error", s.Error)
	case state == "open":
		checkSame(r, "ok", s.OK, false)
		checkSame(r, "error", s.Error, "circuit breaker is open")
	case state == "half-open":
		checkSame(r, "error", s.Error, "too many requests")
	default:
		checkSame(r, "ok", s.OK, true)
	}
}

func checkGbDone(r *run, s gbStep, before string) {
	if s.Asked == nil {
		return
	}
	for _, asked := range *s.Asked {
		opened := slices.Contains(*s.Events, before+"->open")
		if asked.Trip != opened || !opened && !slices.Equal(asked.Counts, *s.Counts) {
			r.mismatch("the answer of the trip rule does not agree: %s", r.seq.Steps[r.at])
		}
	}
}

// followTransitions follows the state transitions among the events. Each transition must begin in
// the state in which the previous transition ended.
func followTransitions(r *run, state, prefix string, events []string) string {
	for _, event := range events {
		change, ok := strings.CutPrefix(event, prefix)
		from, to, arrow := strings.Cut(change, "->")
		if !ok || !arrow {
			continue
		}
		if from != state {
			r.mismatch("%s in state %s: %s", event, state, r.seq.Steps[r.at])
		}
		state = to
	}
	return state
}
