package limiter

import "time"

// member has the methods of a limiter that a [Joint] uses. All limiters of this package implement
// it. An externalLimiter makes a member of any other limiter.
type member interface {
	Limiter
	// peek returns the answer that Take(n) would give at t if ahead other tokens were taken first.
	// It takes and counts nothing. Shadow mode does not affect it.
	peek(t time.Time, ahead int64, n int) Result
	// tryTake is like TakeAt, but does not count the request. In shadow mode the result is OK only
	// if the tokens were taken.
	tryTake(t time.Time, n int) Result
	// putBack gives back n tokens that tryTake took.
	putBack(n int)
	// isShadow reports whether the limiter is in shadow mode.
	isShadow() bool
	// record counts a request that tryTake answered with r, and returns the answer for the caller.
	record(r Result, n int) Result
	// refusedByJoint counts a request that the Joint refused; r is the answer of this limiter.
	// waited reports that the request was one that waits; CountRefused does not apply to it.
	refusedByJoint(t time.Time, n int, r Result, waited bool)
	// subscribe makes the limiter send to w whenever it may have more tokens.
	subscribe(w wakeup)
	// unsubscribe ends one subscription.
	unsubscribe(w wakeup)
}

func asMember(l Limiter) member {
	if m, ok := l.(member); ok {
		return m
	}
	return externalLimiter{l}
}

func (j *Joint) peek(t time.Time, ahead int64, n int) Result {
	waiting := j.queue.waitingTokens.Load()
	r := j.peekAll(t, ahead+waiting, n)
	if waiting != 0 {
		refuseBehindWaiters(&r, n)
	}
	return r
}

func (j *Joint) tryTake(t time.Time, n int) Result {
	if j.queue.waitingTokens.Load() != 0 {
		return j.peek(t, 0, n)
	}
	return j.takeAll(t, n, false)
}

func (j *Joint) putBack(n int) {
	for _, m := range j.members {
		m.Refund(n)
	}
	j.queue.wakeFirst()
}

func (j *Joint) refusedByJoint(t time.Time, n int, r Result, waited bool) {
	j.recordRefusal(r, n)
	if j.queue.waitingTokens.Load() == 0 {
		// otherwise it was refused because callers wait, not because of the limits
		j.tellRefused(t, n, nil, waited)
	}
}

func (j *Joint) subscribe(w wakeup) {
	j.queue.subscribe(w)
	for _, m := range j.members {
		m.subscribe(w)
	}
}

func (j *Joint) unsubscribe(w wakeup) {
	j.queue.unsubscribe(w)
	for _, m := range j.members {
		m.unsubscribe(w)
	}
}

// lacksRoom reports whether one of the limiters is a key for which its Group has no room. Then no
// caller may wait.
func (j *Joint) lacksRoom(n int) bool {
	for _, m := range j.members {
		if k, ok := m.(interface{ lacksRoom(n int) bool }); ok && !j.isShadow() && k.lacksRoom(n) {
			return true
		}
	}
	return false
}

// periodOf returns the period of the limit, such as a minute for 10 per minute, or 0 if it is
// unknown.
func periodOf(l any) time.Duration {
	if p, ok := l.(interface{ period() time.Duration }); ok {
		return p.period()
	}
	return 0
}

// externalLimiter is a limiter from outside this package.
type externalLimiter struct{ Limiter }

// peek ignores the tokens ahead: other limiters cannot take them into account.
func (f externalLimiter) peek(t time.Time, _ int64, n int) Result {
	r := f.tryTake(t, 0)
	if n < 0 || r.Remaining < n { // a refusal changes nothing, and says when to retry
		if r = f.tryTake(t, n); r.OK {
			f.Refund(n) // the tokens have just become available
		}
	}
	return r
}

func (f externalLimiter) tryTake(t time.Time, n int) Result {
	if timed, ok := f.Limiter.(TimedLimiter); ok {
		return timed.TakeAt(t, n)
	}
	return f.Take(n)
}

func (f externalLimiter) RefundAt(taken time.Time, n int) {
	if r, ok := f.Limiter.(interface{ RefundAt(time.Time, int) }); ok {
		r.RefundAt(taken, n)
	} else {
		f.Refund(n)
	}
}

func (f externalLimiter) Hold(d time.Duration) {
	if h, ok := f.Limiter.(holder); ok {
		h.Hold(d)
	}
}

func (f externalLimiter) putBack(n int)                             { f.Refund(n) }
func (externalLimiter) isShadow() bool                              { return false }
func (externalLimiter) record(r Result, _ int) Result               { return r }
func (externalLimiter) refusedByJoint(time.Time, int, Result, bool) {}
func (externalLimiter) subscribe(wakeup)                            {}
func (externalLimiter) unsubscribe(wakeup)                          {}
