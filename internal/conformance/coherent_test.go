package conformance_test

import (
	"slices"
	"strings"
)

// The functions here check that the trace of a breaker is consistent, also where weir skips it: the state, the
// counts and the events of a step have to agree with each other and with the step before.

func coherentR4j(r *run, c r4jConfig) func(r4jStep) {
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
		state = chain(r, state, "STATE_TRANSITION:", *s.Events)
		same(r, "state", s.State, state)
		same(r, "buffered", s.Buffered, *s.Successful+*s.Failed)
		if *s.SlowFailed > min(*s.SlowCalls, *s.Failed) || *s.SlowCalls-*s.SlowFailed > *s.Successful {
			r.mismatch("slow calls do not add up: %s", r.seq.Steps[r.at])
		}
		coherentRates(r, s)
		coherentRefusal(r, s, before, refused)
		refused = *s.NotPermitted
	}
}

func coherentRates(r *run, s r4jStep) {
	if s.FailureRate != nil && *s.FailureRate == -1 {
		sameRate(r, "slow_rate", s.SlowRate, -1)
		return
	}
	sameRate(r, "failure_rate", s.FailureRate, percent(*s.Failed, *s.Buffered))
	sameRate(r, "slow_rate", s.SlowRate, percent(*s.SlowCalls, *s.Buffered))
}

func coherentRefusal(r *run, s r4jStep, before string, refused int64) {
	if s.Op != "tryAcquire" {
		absent(r, "ok", s.OK)
		return
	}
	said := slices.Contains(*s.Events, "NOT_PERMITTED")
	same(r, "ok", s.OK, !said && before != "FORCED_OPEN")
	if s.OK != nil && !*s.OK {
		same(r, "not_permitted", s.NotPermitted, refused+1)
	}
}

func coherentGb(r *run, _ gbConfig) func(gbStep) {
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
		state = chain(r, state, "", *s.Events)
		same(r, "state", s.State, state)
		switch s.Op {
		case "state":
			same(r, "state_out", s.StateOut, state)
		case "sleep":
			same(r, "counts", s.Counts, counts)
		case "allow":
			coherentAllow(r, s, state)
		case "done":
			coherentDone(r, s, before)
		}
		counts = *s.Counts
		sum := counts[1] + counts[2] + counts[3]
		if state == "open" && slices.Max(counts) > 0 || sum > counts[0] || min(counts[4], counts[5]) > 0 {
			r.mismatch("counts do not add up: %s", r.seq.Steps[r.at])
		}
	}
}

func coherentAllow(r *run, s gbStep, state string) {
	switch {
	case s.OK != nil && *s.OK && state != "open":
		absent(r, "error", s.Error)
	case state == "open":
		same(r, "ok", s.OK, false)
		same(r, "error", s.Error, "circuit breaker is open")
	case state == "half-open":
		same(r, "error", s.Error, "too many requests")
	default:
		same(r, "ok", s.OK, true)
	}
}

func coherentDone(r *run, s gbStep, before string) {
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

// chain follows the state transitions among the events. Each transition must begin in the state in
// which the previous transition ended.
func chain(r *run, state, prefix string, events []string) string {
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
