package breaker

import (
	"time"

	"github.com/weir-go/weir/window"
)

const (
	// 1/leastShare is the smallest share of calls that a recovering breaker lets through. A
	// recovering breaker begins with that share.
	leastShare = 8
	// maxRampPause is the longest time for which a recovering breaker lets no call through.
	maxRampPause = time.Second
	// A round that has lasted for Recovery needs only MinCalls / fewParts results.
	fewParts = 16
)

// ramp decides which calls a recovering breaker lets through: one of every oneOf calls. The results
// of these calls are judged in rounds. A good round doubles the share, and a failed one halves it,
// as TCP changes its congestion window from round trip to round trip (RFC 5681). Calls of an
// earlier round are not judged, because a different share of the calls passed when they began. So
// the share doubles at most once in the time that a call takes. Breaker.mu guards a ramp.
type ramp struct {
	oneOf    int           // from 1, all calls pass, to leastShare
	skipped  int           // the calls refused since the last call that passed
	passedAt time.Duration // when the last call passed

	round   uint32        // the number of this round
	began   time.Duration // when it began
	passed  int64         // the calls of this round that passed
	fullAt  time.Duration // when the last call that the round needed was allowed
	limited bool          // a call was refused in this round
	results window.Counts

	// the ends of the last good and the last failed round, or the beginning of the ramp
	goodAt, failedAt time.Duration
}

// newRamp returns a ramp that lets the first call through.
func newRamp(at time.Duration) ramp {
	return ramp{oneOf: leastShare, skipped: leastShare - 1, passedAt: at, began: at, goodAt: at, failedAt: at}
}

// passes reports whether a call that is made at the given time passes.
func (r *ramp) passes(at time.Duration) bool {
	return r.skipped+1 >= r.oneOf || at-r.passedAt >= maxRampPause
}

// pass counts an allowed call. size is the number of calls of the round.
func (r *ramp) pass(at time.Duration, size int64) {
	r.skipped = 0
	r.passedAt = max(r.passedAt, at)
	r.passed++
	if r.passed <= size {
		r.fullAt = r.passedAt
	}
}

// refuse counts a refused call.
func (r *ramp) refuse() {
	r.skipped++
	r.limited = true
}

// size returns the number of calls of a round. If all calls pass, it is the number that a closed
// breaker needs for a verdict. Otherwise it is 1. Where calls are rare, as in a large fleet, larger
// rounds would take so long that the share could not follow the changes of the service.
func (r *ramp) size(minCalls int64) int64 {
	if r.oneOf == 1 {
		return minCalls
	}
	return 1
}

// resultsNeeded returns how many results the round needs. If it has lasted for the given time, a
// few are enough, so a round of rare calls does not take long.
func (r *ramp) resultsNeeded(minCalls int64, at, longest time.Duration) int64 {
	size, has := r.size(minCalls), r.results.Calls()
	if at-r.began >= longest && has >= (minCalls+fewParts-1)/fewParts {
		return min(size, has)
	}
	return size
}

// isOverdue reports whether all calls of the round have passed for longer than the timeout and
// their results are still not enough.
func (r *ramp) isOverdue(at, timeout time.Duration, size int64) bool {
	return r.passed >= size && at-r.fullAt >= timeout
}

// roundDecision is the decision at the end of a round.
type roundDecision uint8

const (
	nextRound roundDecision = iota
	recovered
	relapsed
)

// endRound ends the round and begins the next one with a different share. The breaker has recovered
// if no round has failed for the given time and all calls pass. It has relapsed if no round was
// good for that time and the share is smallest.
func (r *ramp) endRound(failed bool, at, recovery time.Duration) roundDecision {
	all, least, rare := r.oneOf == 1, r.oneOf == leastShare, !r.limited && at-r.began >= maxRampPause
	r.round++
	r.began = max(r.began, at)
	r.passed, r.limited, r.results = 0, false, window.Counts{}
	switch {
	case failed:
		r.failedAt = max(r.failedAt, at)
		r.oneOf = min(2*r.oneOf, leastShare)
		if least && at-r.goodAt >= recovery {
			return relapsed
		}
		return nextRound
	case all && at-r.failedAt >= recovery:
		return recovered
	case rare: // all calls pass already
		r.oneOf = 1
	default:
		r.oneOf = max(r.oneOf/2, 1)
	}
	r.goodAt = max(r.goodAt, at)
	return nextRound
}
