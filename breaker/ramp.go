package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

const (
	// 1/leastShare is the smallest share of calls that a recovering breaker lets through. A
	// recovering breaker begins with that share.
	leastShare = 8
	// maxRampPause is the longest time for which a recovering breaker lets no call through.
	maxRampPause = time.Second
)

// ramp decides which calls a recovering breaker lets through: one of every oneOf calls. A good
// round of calls doubles the share, and a failed one halves it, as TCP changes its congestion
// window from round trip to round trip (RFC 5681). Calls that began before a round are not judged
// in it, because a different share of the calls passed then. Breaker.mu guards a ramp.
type ramp struct {
	oneOf    int           // from 1, all calls pass, to leastShare
	skipped  int           // the calls refused since the last call that passed
	passedAt time.Duration // when the last call passed
	passed   uint32        // how many calls passed, and the number of the last of them

	// While a share passes: the calls since the share last changed, their results, and when the
	// first of them passed.
	round   batch
	results window.Counts
	firstAt time.Duration
	// The calls since the share last fell. They are judged when all calls pass.
	trusted batch
	counted *tally.Calls
	floor   tally.Counts // of counted when the share last fell

	// when the last round was good and when one last failed, or the beginning of the ramp
	goodAt, failedAt time.Duration
}

// batch is calls that passed one after the other.
type batch struct {
	before uint32 // the number of the last call before them
	ended  uint32 // how many of them have ended
	newest uint32 // the position in the batch of the latest call that has ended
}

// end counts a call that has ended, and reports whether it belongs to the batch.
func (b *batch) end(number uint32) bool {
	position := number - b.before
	if int32(position) <= 0 { //nolint:gosec // numbers wrap around
		return false
	}
	b.ended++
	b.newest = max(b.newest, position)
	return true
}

// pending returns the number of calls in flight that passed before one that has ended.
func (b *batch) pending() int64 { return int64(b.newest - b.ended) }

// newRamp returns a ramp that lets the first call through, and counts its calls in an empty tally.
func newRamp(at time.Duration, counted *tally.Calls) *ramp {
	return &ramp{oneOf: leastShare, skipped: leastShare - 1, passedAt: at, counted: counted, goodAt: at, failedAt: at}
}

// passes reports whether a call that is made at the given time passes.
func (r *ramp) passes(at time.Duration) bool {
	return r.skipped+1 >= r.oneOf || at-r.passedAt >= maxRampPause
}

// pass counts an allowed call and returns its number.
func (r *ramp) pass(at time.Duration) uint32 {
	r.skipped = 0
	r.passedAt = max(r.passedAt, at)
	r.passed++
	if r.passed == r.round.before+1 {
		r.firstAt = r.passedAt
	}
	return r.passed
}

// isOverdue reports whether the round has no verdict although its first call passed the timeout
// ago.
func (r *ramp) isOverdue(at, timeout time.Duration) bool {
	return r.oneOf > 1 && r.passed > r.round.before && at-r.firstAt >= timeout
}

// grow doubles the share and begins a round.
func (r *ramp) grow() {
	r.oneOf /= 2
	r.round, r.results = batch{before: r.passed}, window.Counts{}
}

// shrink halves the share, begins a round, and forgets all results.
func (r *ramp) shrink(at time.Duration) {
	r.failedAt = max(r.failedAt, at)
	r.oneOf = min(2*r.oneOf, leastShare)
	r.round, r.results = batch{before: r.passed}, window.Counts{}
	r.trusted, r.floor = r.round, r.counted.Totals()
	r.counted.SetStreak(0)
}
