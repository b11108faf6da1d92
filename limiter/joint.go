package limiter

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Joint is several limits on one thing: so many a second and so many an hour. A request is
// admitted by all of them, or refused and taken from none.
//
// The result is that of all together: the least Limit and Remaining, the largest RetryAfter and
// ResetAfter. RetryAfter is minimal where it is for each; while others wait it reckons with them where the members are
// limiters of this package without names. A Joint of limiters that are shared with others never
// admits too much; it may refuse a request at the moment in which a member is taken by someone else.
// All methods are safe for concurrent use; only Wait and TryWait block.
type Joint struct {
	members []Limiter
	stacked bool
	line    queue
}

// All joins limits into one. A refused request costs nothing anywhere.
// It panics where one is nil.
func All(limits ...Limiter) *Joint {
	for i, l := range limits {
		if l == nil {
			panic(fmt.Errorf("limiter: limit %d is nil, must be a Limiter", i))
		}
	}
	return &Joint{members: slices.Clone(limits)}
}

// Stacked joins limits into one where a request that some refuse is still taken from the
// others, so that a caller who keeps asking uses up the long-term limits as well.
func Stacked(limits ...Limiter) *Joint {
	j := All(limits...)
	j.stacked = true
	return j
}

// Hold admits nothing for d, where a member is a [Holder].
func (j *Joint) Hold(d time.Duration) {
	for _, l := range j.members {
		if h, ok := l.(Holder); ok {
			h.Hold(d)
		}
	}
}

// Take takes n permits from every member, or none from any.
func (j *Joint) Take(n int) Result { return j.TakeAt(time.Now(), n) }

// TakeAt is Take at a given time.
func (j *Joint) TakeAt(t time.Time, n int) Result {
	r, _ := j.TakeWhichAt(t, n)
	return r
}

// TakeWhich is Take that also tells which member decided, by its index: of those that
// refused the one with the largest RetryAfter; of an admission, the one with the least Remaining; of equals the first.
// It is -1 where callers in the queue decided, or there are no members.
func (j *Joint) TakeWhich(n int) (Result, int) { return j.TakeWhichAt(time.Now(), n) }

// TakeWhichAt is TakeWhich at a given time.
func (j *Joint) TakeWhichAt(t time.Time, n int) (Result, int) {
	if ahead := j.line.ahead.Load(); ahead != 0 {
		r := j.behind(t, ahead, n)
		stepBack(&r, n)
		return r, -1
	}
	return j.decide(t, n)
}

// Refund gives n permits back to every member.
func (j *Joint) Refund(n int) {
	for _, m := range j.members {
		m.Refund(n)
	}
	j.line.poke()
}

// Wait takes n permits from every member as soon as that can be done, and returns nil then. It is served,
// refused and given up as that of a [TokenBucket].
func (j *Joint) Wait(ctx context.Context, n int) error { return j.TryWait(ctx, n, Never) }

// TryWait is Wait that gives up at once, with a *LimitedError, where it would take longer than limit.
func (j *Joint) TryWait(ctx context.Context, n int, limit time.Duration) error {
	return j.line.wait(ctx, j, request{n: n, limit: limit})
}

// decide looks first, because a permit that is taken and given back may have been missing elsewhere meanwhile.
func (j *Joint) decide(t time.Time, n int) (Result, int) {
	if r, which := j.look(t, n); !r.OK {
		if j.stacked {
			j.pile(t, n)
		}
		return r, which
	}
	v := verdict{which: -1}
	for i, m := range j.members {
		r := m.TakeAt(t, n)
		v.add(i, r, r.Remaining)
		if !r.OK && !j.stacked { // somebody was faster
			for _, taken := range j.members[:i] {
				taken.Refund(n)
			}
			break
		}
	}
	return v.result()
}

// look tells what a request would get, and takes nothing.
func (j *Joint) look(t time.Time, n int) (Result, int) {
	v := verdict{which: -1}
	for i, m := range j.members {
		r, left := peek(m, t, n)
		v.add(i, r, left)
	}
	return v.result()
}

// peek tells what a member would answer, and what it would have left.
func peek(m Limiter, t time.Time, n int) (r Result, left int) {
	r = m.TakeAt(t, 0)
	left = r.Remaining - n
	if n < 0 || left < 0 { // a refusal changes nothing
		if r = m.TakeAt(t, n); r.OK {
			m.Refund(n) // it has just become free
		}
	}
	return r, left
}

// behind tells how things will stand for one who wants n permits when ahead others have been
// handed out. Of those a member does not know that is not of this package, or has a name.
func (j *Joint) behind(t time.Time, ahead int64, n int) Result {
	v := verdict{which: -1}
	for i, m := range j.members {
		var r Result
		if s, ok := m.(server); ok {
			s.after(&r, s.now(), ahead, n)
		} else {
			r, _ = peek(m, t, n)
		}
		v.add(i, r, r.Remaining)
	}
	r, _ := v.result()
	return r
}

// pile takes from those members that have something left.
func (j *Joint) pile(t time.Time, n int) {
	for _, m := range j.members {
		if m.TakeAt(t, 0).Remaining >= n {
			m.TakeAt(t, n)
		}
	}
}

func (j *Joint) now() time.Duration { return 0 }

func (j *Joint) serve(r *Result, _ time.Duration, n int) { *r, _ = j.decide(time.Now(), n) }

func (j *Joint) after(r *Result, _ time.Duration, ahead int64, n int) {
	*r = j.behind(time.Now(), ahead, n)
}

// verdict gathers the results of several limiters into one.
type verdict struct {
	all   Result
	which int
	left  int // of the member that decided so far
	some  bool
}

func (v *verdict) add(i int, r Result, left int) {
	if !v.some {
		v.some, v.all, v.which, v.left = true, r, i, left
		return
	}
	worse := v.all.OK && left < v.left
	if !r.OK {
		worse = v.all.OK || r.RetryAfter > v.all.RetryAfter
	}
	if worse {
		v.which, v.left = i, left
	}
	v.all = Result{
		OK: v.all.OK && r.OK, Limit: min(v.all.Limit, r.Limit), Remaining: min(v.all.Remaining, r.Remaining),
		RetryAfter: max(v.all.RetryAfter, r.RetryAfter), ResetAfter: max(v.all.ResetAfter, r.ResetAfter),
	}
}

func (v *verdict) result() (Result, int) {
	if !v.some {
		return Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}, -1
	}
	return v.all, v.which
}
