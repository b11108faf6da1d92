package breaker

import (
	"fmt"
	"sort"
)

// margin says how many of the last failures must have been successes, so that the evidence would
// not have opened the breaker by any rule. where is the part of the text that says where the
// failures are. margin returns "" if functions of the user or slow calls may have opened the
// breaker anyway.
func (r *rules) margin(e *evidence, where string) string {
	if r.asked {
		return ""
	}
	n, ok := leastWhere(e.calls.Failures, func(n int64) bool { return !r.opensWithFewer(e, n) })
	if !ok {
		return ""
	}
	return fewerText(n, "failure", where)
}

// rateMargin is like margin, but for the rate that was reached: the failure rate, or otherwise the
// slow rate.
func (r *rules) rateMargin(e *evidence) string {
	if r.failureRate.reached(e.calls.Failures, e.calls.Calls+e.pending) {
		return r.margin(e, "in this window")
	}
	return r.slowMargin(e)
}

// slowMargin is like margin, but it says how many slow calls must have been fast. If another rule
// is reached too, it returns "".
func (r *rules) slowMargin(e *evidence) string {
	if r.asked || r.runReached(e.run, e.calls, e.pending) || e.streak >= r.consecutive {
		return ""
	}
	slow := min(e.slow.Calls, e.calls.Calls)
	n, ok := leastWhere(slow, func(n int64) bool { return !r.slowRate.reached(slow-n, e.calls.Calls) })
	if !ok {
		return ""
	}
	return fewerText(n, "slow call", "in this window")
}

// opensWithFewer reports whether the evidence would open the breaker if the last n failures, at
// least one, were successes. Then no consecutive failures would be left, so that rule needs no
// check.
//
// The score of a run is the largest sum over the calls since any earlier one. If the last n
// failures were successes, each of these sums would fall by the same amount, or to at most 0. So
// the sum of the run would stay the largest.
func (r *rules) opensWithFewer(e *evidence, n int64) bool {
	calls := e.calls
	calls.Failures -= n
	if _, reached := r.rateReached(calls, e.slow, e.pending); reached {
		return true
	}
	return r.runReached(e.run.FewerFailures(n), calls, e.pending)
}

// leastWhere returns the least n from 1 to most for which ok is true, and whether there is one. If
// ok is true for n, it must be true for all larger numbers.
func leastWhere(most int64, ok func(n int64) bool) (n int64, found bool) {
	i := sort.Search(int(most), func(i int) bool { return ok(int64(i) + 1) })
	return int64(i) + 1, int64(i) < most
}

func fewerText(n int64, what, where string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s fewer %s would not have opened it", n, what, where)
}
