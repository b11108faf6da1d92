package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// Joint combines several limits, such as one per second and one per hour. A request takes tokens
// from all of its limiters, or from none. A Joint with a name keeps statistics of several limits
// together, or of a limiter of another package.
//
// The result has the smallest Limit and Remaining and the largest RetryAfter and ResetAfter of all
// limiters. A refused request costs nothing, except with a limiter that has CountRefused set.
//
// A Joint of one limiter waits as that limiter does. A Joint of several limiters has a queue of its
// own without a bound; MaxWaiters of its limiters applies only to their own queues. When a limiter
// of this package changes, it wakes the waiters of the Joint. With limiters of other packages, the
// waiters try again after RetryAfter.
//
// If its limiters are also used elsewhere, a Joint never allows too many requests, but it may
// refuse a request while another caller takes tokens. All methods are safe for concurrent use. Only
// Wait blocks. The zero value does not work: use NewJoint.
type Joint struct {
	named
	members []member
	only    WaitLimiter // the only member, if it can be waited for; otherwise nil
	queue   waitQueue

	mu      sync.Mutex
	waiting int // calls of Wait; while there is one, the members send to queue.changed
}

// NewJoint combines limiters that must all allow a request. A request takes the same number of
// tokens from each, but one from a limiter of [PerRequest]. If the numbers differ otherwise, call
// [Reserve] for each limiter instead. Without limiters every request is allowed. The name
// appears in errors and metrics. If it is not empty, the Joint keeps statistics and is a
// [stat.Source]. For shadow mode, set Shadow of the limiters. NewJoint panics if a limiter is nil.
func NewJoint(name string, limiters ...Limiter) *Joint {
	j := &Joint{}
	for i, l := range limiters {
		if l == nil {
			panic(fmt.Errorf("limiter: NewJoint: limiters[%d] is nil", i))
		}
		j.members = append(j.members, asMember(l))
	}
	if len(limiters) == 1 {
		j.only, _ = limiters[0].(WaitLimiter)
	}
	j.statistics = newStatistics(name, false, func() (Result, time.Duration) { return j.peek(time.Now(), 0, 0), j.period() })
	if j.statistics != nil {
		j.allOrNothing = j.hasAllOrNothing()
	}
	j.queue.keepStatistics(j.statistics)
	return j
}

// hasAllOrNothing reports whether a LeakyBucket is among the limiters.
func (j *Joint) hasAllOrNothing() bool {
	for _, m := range j.members {
		if p, ok := m.(perRequest); ok {
			m = p.member
		}
		switch m := m.(type) {
		case *LeakyBucket:
			return true
		case *Joint:
			if m.hasAllOrNothing() {
				return true
			}
		}
	}
	return false
}

// Take takes n tokens from every limiter, or none.
func (j *Joint) Take(n int) Result { return j.take(time.Now(), n, clock.ReadTolerance) }

// TakeAt is Take at the time t. A limiter that is not a [TimedLimiter] takes its tokens now.
func (j *Joint) TakeAt(t time.Time, n int) Result { return j.take(t, n, clock.GivenTolerance) }

func (j *Joint) take(t time.Time, n int, tolerance time.Duration) Result {
	if j.queue.waitingTokens.Load() != 0 {
		return j.record(j.peek(t, 0, n), n)
	}
	return j.record(j.takeOrRestart(nil, t, n, refusedToo, tolerance), n)
}

// Hold makes every limiter that has a method Hold refuse all requests for d.
func (j *Joint) Hold(d time.Duration) {
	for _, m := range j.members {
		if h, ok := m.(holder); ok {
			h.Hold(d)
		}
	}
}

// Wait takes n tokens from every limiter as soon as all of them have that many. See
// [TokenBucket.Wait].
func (j *Joint) Wait(ctx context.Context, n int) error { return wait(ctx, j, n) }

func (j *Joint) waitTaken(ctx context.Context, n int, maxWait time.Duration, w *waiter) (taken, error) {
	if j.only != nil {
		return j.waitForOnly(ctx, n, maxWait, w)
	}
	var t taken
	var done bool
	var err error
	if w.mustAsk() {
		t, done, err = j.queue.acquireNow(ctx, j, n, maxWait)
	}
	if !done {
		j.addWaiting(1)
		defer j.addWaiting(-1)
		t, err = j.queue.waitInQueue(ctx, j, n, maxWait, w)
	}
	if limited, ok := errors.AsType[*LimitedError](err); ok {
		if limited.Reason == NoRoom {
			limited.MaxKeys = j.maxKeys()
		}
		j.tellRefused(time.Now(), n, nil, true)
	}
	return t, err
}

// waitForOnly waits for the only limiter, and counts the request.
func (j *Joint) waitForOnly(ctx context.Context, n int, maxWait time.Duration, w *waiter) (t taken, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	if w == nil && j.statistics != nil {
		if r := j.takeAll(&t, time.Now(), n, allowedOnly); r.OK || isPeek(r, n) {
			j.record(r, n)
			return t, nil
		}
	}
	began := j.beginWait()
	r, err := waitReserve(ctx, j.only, n, maxWait, w)
	if err == nil {
		r.taken.none = r.taken.n == 0 && n > 0
		t = taken{n: n, parts: []taken{r.taken}}
	}
	return t, j.endWait(began, n, err)
}

// addWaiting changes the number of waiting calls. The first one subscribes to the members, and the
// last one unsubscribes.
func (j *Joint) addWaiting(calls int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.waiting
	j.waiting += calls
	switch {
	case before == 0:
		// a new one, because earlier waiters may have been in another testing/synctest bubble
		w := make(wakeup, 1)
		j.queue.setChanged(w)
		for _, m := range j.members {
			m.subscribe(w)
		}
	case j.waiting == 0:
		for _, m := range j.members {
			m.unsubscribe(j.queue.changed)
		}
	}
}

// takeOrRestart is takeAll, and takeAll again if a limiter has refused because its clock is a new
// one.
func (j *Joint) takeOrRestart(back *taken, t time.Time, n int, c counting, tolerance time.Duration) Result {
	r := j.takeAll(back, t, n, c)
	if r.RetryAfter > tolerance && j.restartIfNew(t, tolerance) {
		r = j.takeAll(back, t, n, c)
	}
	return r
}

// takeAll takes n tokens from every member, or none. c says whether the members count the request.
// They count it as allowed only if all of them allow it. If back is not nil, it is set to what was
// taken, which allocates.
func (j *Joint) takeAll(back *taken, t time.Time, n int, c counting) Result {
	var few [4]Result
	var fewTaken [4]taken
	parts := fewTaken[:0]
	answers := few[:0]
	if len(j.members) > 1 {
		// peek first: tokens that are taken and put back would be missing for other callers
		// meanwhile
		for _, m := range j.members {
			answers = append(answers, m.peek(t, 0, n))
		}
		if r := j.combine(answers, n); !r.OK {
			if c == refusedToo {
				j.tellRefused(t, n, answers, false)
			}
			return r
		}
		answers = answers[:0]
	}
	for i, m := range j.members {
		r, part := m.tryTake(t, n, min(c, allowedOnly))
		part.none = part.n == 0 && n > 0
		answers, parts = append(answers, r), append(parts, part)
		if r := j.combine(answers, n); !r.OK {
			j.putBackTo(t, parts[:i], n)
			if c == refusedToo && len(j.members) == 1 { // otherwise another caller was faster
				j.tellRefused(t, n, answers, false)
			}
			return r
		}
	}
	for i, m := range j.members {
		if c != nothing {
			m.record(answers[i], n)
		}
	}
	if back != nil && n > 0 {
		*back = taken{n: n, parts: append([]taken(nil), parts...)}
	}
	return j.combine(answers, n)
}

// combine returns the answer of the Joint, given the answers of its first members.
func (j *Joint) combine(answers []Result, n int) Result {
	all := Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}
	for i, r := range answers {
		if r.OK || n != 0 && j.members[i].isShadow() {
			r.OK, r.RetryAfter = true, 0
		}
		if p, ok := j.members[i].(perRequest); ok {
			r = p.inTokens(r)
		}
		all = Result{
			OK: all.OK && r.OK, NoRoom: all.NoRoom || r.NoRoom && !r.OK, Limit: min(all.Limit, r.Limit), Remaining: min(all.Remaining, r.Remaining),
			RetryAfter: max(all.RetryAfter, r.RetryAfter), ResetAfter: max(all.ResetAfter, r.ResetAfter),
		}
	}
	return all
}

// putBackTo gives n of the tokens that were taken from the first members back to them. A member in
// shadow mode may have allowed a request without taking tokens.
func (j *Joint) putBackTo(now time.Time, parts []taken, n int) {
	for i := range parts {
		if part := parts[i]; part.n > 0 {
			parts[i] = j.members[i].putBack(now, part, min(n, part.n))
		}
	}
}

// tellRefused notifies the members that a request for n tokens was refused. answers holds the
// answers of the members. If it is nil, tellRefused asks the members now.
func (j *Joint) tellRefused(t time.Time, n int, answers []Result, waited bool) {
	for i, m := range j.members {
		var r Result
		if answers != nil {
			r = answers[i]
		} else {
			r = m.peek(t, 0, n)
		}
		m.refusedByJoint(t, n, r, waited)
	}
}

// peekAll returns the combined answer that the members would give if ahead other tokens were taken
// first.
func (j *Joint) peekAll(t time.Time, ahead int64, n int) Result {
	var few [4]Result
	answers := few[:0]
	for _, m := range j.members {
		answers = append(answers, m.peek(t, ahead, n))
	}
	return j.combine(answers, n)
}

func (j *Joint) acquire(n int) (r Result, back taken) {
	r = j.takeOrRestart(&back, time.Now(), n, allowedOnly, clock.ReadTolerance)
	if !r.OK && j.lacksRoom(n) {
		r.ResetAfter = noWait
	}
	return r, back
}

func (j *Joint) predict(ahead int64, n int) Result { return j.peekAll(time.Now(), ahead, n) }

// period returns the period of the only limiter, or 0.
func (j *Joint) period() time.Duration {
	if len(j.members) == 1 {
		return periodOf(j.members[0])
	}
	return 0
}
