package sim

import (
	"cmp"
	"slices"
	"time"
)

// Call is one call of a run, with all its attempts, or one of these attempts.
type Call struct {
	Began, Ended time.Duration
	// Host is the index of the host of the attempt, or of the first attempt of the call.
	Host int
	// Process is the process that makes the call, counted from 0 over all clients.
	Process int
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

// Trace is like Run, but returns all calls and all attempts in the order in which they began, those
// of the warmup included. All guards meet the same calls, unless a client is a closed loop.
func Trace(world World, maker Maker, seed uint64) (calls, attempts []Call) {
	r := newRun(world, maker, seed)
	r.traced = true
	r.runAll(maker)
	for _, all := range [][]Call{r.tally.calls, r.tally.attempts} {
		slices.SortStableFunc(all, func(a, b Call) int { return cmp.Compare(a.Began, b.Began) })
	}
	return r.tally.calls, r.tally.attempts
}

func newTraced(k *call, began time.Duration, e ending) Call {
	c := Call{Began: began, Ended: k.client.run.now(), Host: k.host, Process: k.process, Hurried: k.hurried, End: Failed}
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
