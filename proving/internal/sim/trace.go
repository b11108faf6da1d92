package sim

import (
	"cmp"
	"slices"
	"time"
)

// Call is one call of a run, with all its attempts.
type Call struct {
	Began, Ended time.Duration
	// Host is the index of the host of the first attempt.
	Host int
	// Hurried is true for a call with the deadline Client.Hurried.
	Hurried bool
	End     End
}

// End is how a call ended for its user.
type End uint8

// The ends of a call: a good answer, none, or a refusal of the guard.
const (
	Good End = iota
	Failed
	Refused
)

// Trace is like Run, but returns all calls in the order in which they began, those of the warmup
// included. All guards meet the same calls, unless a client is a closed loop.
func Trace(world World, maker Maker, seed uint64) []Call {
	r := newRun(world, maker, seed)
	r.traced = true
	r.runAll(maker)
	calls := r.tally.calls
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.Began, b.Began) })
	return calls
}

func newTraced(k *call, e ending, now time.Duration) Call {
	c := Call{Began: k.began, Ended: now, Host: k.host, Hurried: k.hurried, End: Failed}
	switch {
	case k.good(e):
		c.End = Good
	case e.refused:
		c.End = Refused
	}
	return c
}

// good reports whether a call that ended so is good for its user.
func (k *call) good(e ending) bool { return e.err == nil || k.served && !e.refused }
