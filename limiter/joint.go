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
	if ahead := j.line.ahead.Load(); ahead != 0 {
		r := j.behind(t, ahead, n)
		stepBack(&r, n)
		return r
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
func (j *Joint) decide(t time.Time, n int) Result {
	if r := j.look(t, n); !r.OK {
		return r
	}
	v := newVerdict()
	for i, m := range j.members {
		r := m.TakeAt(t, n)
		v.add(r)
		if !r.OK { // somebody was faster
			for _, taken := range j.members[:i] {
				taken.Refund(n)
			}
			break
		}
	}
	return v.Result
}

// look tells what a request would get, and takes nothing.
func (j *Joint) look(t time.Time, n int) Result {
	v := newVerdict()
	for _, m := range j.members {
		v.add(peek(m, t, n))
	}
	return v.Result
}

// peek tells what a member would answer.
func peek(m Limiter, t time.Time, n int) Result {
	r := m.TakeAt(t, 0)
	if n < 0 || r.Remaining < n { // a refusal changes nothing
		if r = m.TakeAt(t, n); r.OK {
			m.Refund(n) // it has just become free
		}
	}
	return r
}

// behind tells how things will stand for one who wants n permits when ahead others have been
// handed out. Of those a member does not know that is not of this package, or has a name.
func (j *Joint) behind(t time.Time, ahead int64, n int) Result {
	v := newVerdict()
	for _, m := range j.members {
		var r Result
		if s, ok := m.(server); ok {
			s.after(&r, s.now(), ahead, n)
		} else {
			r = peek(m, t, n)
		}
		v.add(r)
	}
	return v.Result
}

func (j *Joint) now() time.Duration { return 0 }

func (j *Joint) serve(r *Result, _ time.Duration, n int) { *r = j.decide(time.Now(), n) }

func (j *Joint) after(r *Result, _ time.Duration, ahead int64, n int) {
	*r = j.behind(time.Now(), ahead, n)
}

// verdict is the results of several limiters in one.
type verdict struct{ Result }

// newVerdict is the result of no limiter: there is no limit.
func newVerdict() verdict {
	return verdict{Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}}
}

func (v *verdict) add(r Result) {
	v.Result = Result{
		OK: v.OK && r.OK, Limit: min(v.Limit, r.Limit), Remaining: min(v.Remaining, r.Remaining),
		RetryAfter: max(v.RetryAfter, r.RetryAfter), ResetAfter: max(v.ResetAfter, r.ResetAfter),
	}
}
