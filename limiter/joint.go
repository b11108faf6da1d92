package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/sentinel"
)

// Joint is several limits on one thing: so many a second and so many an hour. A request is
// admitted by all of them, or refused and taken from none.
//
// The result is that of all together: the least Limit and Remaining, the largest RetryAfter and
// ResetAfter. RetryAfter is minimal where it is for each; while others wait it reckons with them where the members are
// limiters of this package. Those who wait are woken by what changes in such members, and not in others: for these they
// look again after RetryAfter. A Joint of limiters that are shared with others never
// admits too much; it may refuse a request at the moment in which a member is taken by someone else.
// All methods are safe for concurrent use; only Wait and WaitAtMost block.
type Joint struct {
	members []Limiter
	line    queue

	mu      sync.Mutex
	waiting int // callers of Wait; while there are any, the members ring the queue's bell
}

// member is a limiter of this package as a Joint of it sees it.
type member interface {
	// peek tells what Take answers once ahead other permits have been taken, but for shadow mode. It takes and counts nothing.
	peek(r *Result, t time.Time, ahead int64, n int)
	// attempt takes n permits and counts nothing. In shadow mode it is OK only where they have been taken.
	attempt(t time.Time, n int) Result
	// giveBack gives back n permits that attempt has taken.
	giveBack(n int)
	// shade makes OK what shadow mode lets through.
	shade(r *Result, n int)
	// count counts what attempt has answered.
	count(r *Result, n int)
	watch(b bell)
	unwatch(b bell)
}

// roomy is a member that may have no room for its key, when nobody is to wait for it.
type roomy interface {
	lacksRoom(n int) bool
}

func lacksRoom(l Limiter, n int) bool {
	m, ok := l.(roomy)
	return ok && m.lacksRoom(n)
}

// refuser is a member that counts requests which are refused.
type refuser interface {
	// refuse counts one. CountRefused is not for one that would have waited.
	refuse(t time.Time, n int, waited bool)
}

// All joins limits into one. A refused request costs nothing anywhere, but where a member counts refused requests
// (FixedWindowConfig.CountRefused): there each counts, whichever member has refused it. The number of callers that may wait
// for a Joint is not bounded; MaxWaiters of its members bounds those that wait for a member. All panics where a limit is nil.
func All(limits ...Limiter) *Joint {
	for i, l := range limits {
		if l == nil {
			panic(fmt.Errorf("limiter: limit %d is nil, must be a Limiter", i))
		}
	}
	return &Joint{members: slices.Clone(limits)}
}

// Hold admits nothing for d, where a member has a Hold.
func (j *Joint) Hold(d time.Duration) {
	for _, l := range j.members {
		if h, ok := l.(holder); ok {
			h.Hold(d)
		}
	}
}

// Take takes n permits from every member, or none from any.
func (j *Joint) Take(n int) Result { return j.TakeAt(time.Now(), n) }

// TakeAt is Take at a given time. A member that is no [TimedLimiter] takes now.
func (j *Joint) TakeAt(t time.Time, n int) Result {
	if j.line.ahead.Load() != 0 {
		return j.attempt(t, n)
	}
	r := j.decide(t, n)
	if !r.OK {
		j.refuse(t, n, false)
	}
	return r
}

// Refund gives n permits back to every member.
func (j *Joint) Refund(n int) {
	for _, m := range j.members {
		m.Refund(n)
	}
	j.line.poke()
}

// RefundAt gives n permits back to every member that were taken at a time: see [SlidingLog.RefundAt]. A member without
// a RefundAt gets a Refund.
func (j *Joint) RefundAt(taken time.Time, n int) {
	for _, m := range j.members {
		refundAt(m, taken, n)
	}
	j.line.poke()
}

// Wait takes n permits from every member as soon as that can be done, and returns nil then. It is served,
// refused and given up as that of a [TokenBucket].
func (j *Joint) Wait(ctx context.Context, n int) error { return j.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once, with a *LimitedError, where it would take longer than maxWait.
func (j *Joint) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if n > 0 && j.line.ahead.Load() == 0 && ctx.Err() == nil && j.decide(time.Now(), n).OK {
		return nil
	}
	j.listen(1)
	defer j.listen(-1)
	err := j.line.wait(ctx, j, request{n: n, limit: maxWait})
	if errors.Is(err, sentinel.ErrRefused) {
		j.refuse(time.Now(), n, true)
	}
	return err
}

// listen counts callers of Wait. The first has the members ring, and the last has them stop.
func (j *Joint) listen(callers int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.waiting
	j.waiting += callers
	switch {
	case before == 0:
		j.line.setBell(make(bell, 1)) // a new one, as those before may have waited in another testing/synctest bubble
		j.watchMembers(j.line.bell)
	case j.waiting == 0:
		j.unwatchMembers(j.line.bell)
	}
}

func (j *Joint) watchMembers(b bell) {
	for _, l := range j.members {
		if m, ok := l.(member); ok {
			m.watch(b)
		}
	}
}

func (j *Joint) unwatchMembers(b bell) {
	for _, l := range j.members {
		if m, ok := l.(member); ok {
			m.unwatch(b)
		}
	}
}

func (j *Joint) watch(b bell) {
	j.line.watch(b)
	j.watchMembers(b)
}

func (j *Joint) unwatch(b bell) {
	j.line.unwatch(b)
	j.unwatchMembers(b)
}

// try is Take that counts no refusal.
func (j *Joint) try(n int) Result { return j.attempt(time.Now(), n) }

// decide looks first, because a permit that is taken and given back may have been missing elsewhere meanwhile. Members
// count the request only once all have admitted it.
func (j *Joint) decide(t time.Time, n int) Result {
	if r := j.look(t, 0, n); !r.OK {
		return r
	}
	v := newVerdict()
	var few [4]Result
	answers := few[:0]
	for i, l := range j.members {
		r := attempt(l, t, n)
		answers = append(answers, r)
		if shade(l, &r, n); !r.OK { // somebody was faster
			v.add(r)
			j.giveBackAll(answers[:i], n)
			return v.Result
		}
		v.add(r)
	}
	for i, l := range j.members {
		if m, ok := l.(member); ok {
			m.count(&answers[i], n)
		}
	}
	return v.Result
}

// attempt takes n permits of a member.
func attempt(l Limiter, t time.Time, n int) Result {
	if m, ok := l.(member); ok {
		return m.attempt(t, n)
	}
	return takeAt(l, t, n)
}

func shade(l Limiter, r *Result, n int) {
	if m, ok := l.(member); ok {
		m.shade(r, n)
	}
}

// giveBackAll gives back what the first members have taken.
func (j *Joint) giveBackAll(answers []Result, n int) {
	for i, r := range answers {
		switch m, ours := j.members[i].(member); {
		case !r.OK: // let through by shadow mode
		case ours:
			m.giveBack(n)
		default:
			j.members[i].Refund(n)
		}
	}
}

// look tells what the members together would answer once ahead other permits have been taken.
func (j *Joint) look(t time.Time, ahead int64, n int) Result {
	v := newVerdict()
	for _, l := range j.members {
		var r Result
		if m, ok := l.(member); ok {
			m.peek(&r, t, ahead, n)
			m.shade(&r, n)
		} else {
			r = peek(l, t, n)
		}
		v.add(r)
	}
	return v.Result
}

// takeAt takes permits at a time, of a limiter that can be told one.
func takeAt(l Limiter, t time.Time, n int) Result {
	if timed, ok := l.(TimedLimiter); ok {
		return timed.TakeAt(t, n)
	}
	return l.Take(n)
}

// peek tells what a limiter of another package would answer. Of those ahead it does not know.
func peek(l Limiter, t time.Time, n int) Result {
	r := takeAt(l, t, 0)
	if n < 0 || r.Remaining < n { // a refusal changes nothing
		if r = takeAt(l, t, n); r.OK {
			l.Refund(n) // it has just become free
		}
	}
	return r
}

func (j *Joint) peek(r *Result, t time.Time, ahead int64, n int) {
	waiting := j.line.ahead.Load()
	*r = j.look(t, ahead+waiting, n)
	if waiting != 0 {
		stepBack(r, n)
	}
}

func (j *Joint) attempt(t time.Time, n int) Result {
	if j.line.ahead.Load() != 0 {
		var r Result
		j.peek(&r, t, 0, n)
		return r
	}
	return j.decide(t, n)
}

func (j *Joint) giveBack(n int)     { j.Refund(n) }
func (j *Joint) shade(*Result, int) {}
func (j *Joint) count(*Result, int) {} // its members have counted

func (j *Joint) lacksRoom(n int) bool {
	return slices.ContainsFunc(j.members, func(l Limiter) bool { return lacksRoom(l, n) })
}

func (j *Joint) refuse(t time.Time, n int, waited bool) {
	for _, l := range j.members {
		if m, ok := l.(refuser); ok {
			m.refuse(t, n, waited)
		}
	}
}

func (j *Joint) now() time.Duration { return 0 }

func (j *Joint) serve(r *Result, _ time.Duration, n int) {
	if *r = j.decide(time.Now(), n); !r.OK && j.lacksRoom(n) {
		r.ResetAfter = useless
	}
}

func (j *Joint) after(r *Result, _ time.Duration, ahead int64, n int) {
	*r = j.look(time.Now(), ahead, n)
}

// verdict is the results of several limiters in one.
type verdict struct{ Result }

// newVerdict is the result of no limiter: there is no limit.
func newVerdict() verdict {
	return verdict{Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}}
}

func (v *verdict) add(r Result) {
	if r.OK {
		r.RetryAfter = 0 // where a Named lets through what its limiter refuses, it still says how that refused
	}
	v.Result = Result{
		OK: v.OK && r.OK, Limit: min(v.Limit, r.Limit), Remaining: min(v.Remaining, r.Remaining),
		RetryAfter: max(v.RetryAfter, r.RetryAfter), ResetAfter: max(v.ResetAfter, r.ResetAfter),
	}
}
