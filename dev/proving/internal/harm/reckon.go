package harm

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// The defaults of breaker.Config that say what an outage is, and how soon a guard is back.
const (
	window       = 10 * time.Second
	failureRate  = 0.5
	minCalls     = 20
	failureRun   = 10
	callsPerRun  = 6 // a run is longer by one failure for as many calls in the window
	cooldown     = time.Second
	recovery     = 20 * time.Second
	probeTimeout = 10 * time.Second
	maxAsked     = time.Minute // that a guard waits because the service asked for it
)

// outages returns the spans in which the service is out, in order. The calls are the attempts of a
// run without a guard, because a breaker judges attempts. In each moment of an outage, a breaker
// has seen over its Window that at least FailureRate of them fail, or a run of failures.
//
// An outage begins with the first call that fails in that window, and ends when the last one has
// failed.
func outages(calls []sim.Call) (spans []sim.Span) {
	first, failed := 0, []int(nil) // the first call in the window, and the calls in it that failed
	run := 0
	for i, c := range calls {
		for c.Began-calls[first].Began >= window {
			first++
		}
		for len(failed) > 0 && failed[0] < first {
			failed = failed[1:]
		}
		if c.End == sim.Good {
			run = 0
		} else {
			run++
			failed = append(failed, i)
		}
		n := i - first + 1
		var from int
		switch {
		case n >= minCalls && float64(len(failed)) >= failureRate*float64(n):
			from = failed[0]
		case run >= failureRun+n/callsPerRun:
			from = i - run + 1
		default:
			continue
		}
		ended := calls[failed[len(failed)-1]].Ended
		spans = join(spans, sim.Span{From: calls[from].Began, To: ended})
	}
	return spans
}

// join adds a span to spans. Those that overlap become one.
func join(spans []sim.Span, s sim.Span) []sim.Span {
	for len(spans) > 0 && spans[len(spans)-1].To >= s.From {
		last := spans[len(spans)-1]
		s = sim.Span{From: min(s.From, last.From), To: max(s.To, last.To)}
		spans = spans[:len(spans)-1]
	}
	return append(spans, s)
}

// wayBack returns how long a guard may take after an outage that ended at t until all calls pass.
// It is the time of Window, Cooldown and Recovery, of three probes of the longest call, and of
// MinCalls calls: rounds of calls that are compared take as long as the calls.
func wayBack(calls []sim.Call, t, asked time.Duration, processes int) time.Duration {
	var longest time.Duration
	for _, c := range calls {
		longest = max(longest, c.Ended-c.Began)
	}
	i, _ := slices.BinarySearchFunc(calls, t, func(c sim.Call, t time.Duration) int { return cmp.Compare(c.Began, t) })
	least := window + cooldown + recovery + 3*min(longest, probeTimeout) + min(asked, maxAsked)*11/10
	if i += minCalls * max(processes, 1); i < len(calls) {
		return least + calls[i].Began - t
	}
	return time.Duration(1<<62) - t // the calls end before
}

// takenOut returns the outages with the ways back. The calls are those of one process.
func takenOut(calls []sim.Call, w sim.World) (spans []sim.Span) {
	for _, s := range outages(calls) {
		s.To += wayBack(calls, s.To, w.Service.RetryAfter, 1)
		spans = join(spans, s)
	}
	return spans
}

// covers returns a function that reports whether a time is in one of the spans. Its times must not
// go back.
func covers(spans []sim.Span) func(t time.Duration) bool {
	return func(t time.Duration) bool {
		for len(spans) > 0 && spans[0].To <= t {
			spans = spans[1:]
		}
		return len(spans) > 0 && spans[0].From <= t
	}
}

// back returns how long after t the guard is back. That is the time until a span begins in which it
// refuses no call. The span is as long as the window, and has at least minCalls calls. The result
// is negative if there is no such span.
func back(calls []sim.Call, t time.Duration) time.Duration {
	i, _ := slices.BinarySearchFunc(calls, t, func(c sim.Call, t time.Duration) int { return cmp.Compare(c.Began, t) })
	since, passed := t, 0
	for _, c := range calls[i:] {
		if c.End == sim.Refused {
			since, passed = c.Began, 0
			continue
		}
		if passed++; passed >= minCalls && c.Began-since >= window {
			return since - t
		}
	}
	return -1
}
