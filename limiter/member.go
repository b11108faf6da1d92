package limiter

import (
	"context"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
)

// member has the methods of a limiter that a [Joint] uses. All limiters of this package implement
// it. An externalLimiter makes a member of any other limiter.
type member interface {
	Limiter
	// peek returns the answer that Take(n) would give at t if ahead other tokens were taken first.
	// It takes and counts nothing. Shadow mode does not affect it.
	peek(t time.Time, ahead int64, n int) Result
	// tryTake is like TakeAt, but does not count the request in the statistics, and returns what it
	// took. In shadow mode the result is OK only if the tokens were taken. c says what the limiters
	// of a Joint count, and whether CountRefused applies.
	tryTake(t time.Time, n int, c counting) (Result, taken)
	giver
	// restartIfNew makes the limiter start again if its clock is a new one, and reports whether it
	// did: see clock.IsNew. The methods that take tokens do so themselves.
	restartIfNew(t time.Time, tolerance time.Duration) bool
	// takenAt returns what a request for n tokens has taken at t, as far as that is known without
	// its answer.
	takenAt(t time.Time, n int) taken
	// isItself reports whether l is this limiter. It is not if l is a type of a user that embeds
	// this limiter, and may have methods of its own.
	isItself(l any) bool
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

// counting says what a request counts in limiters besides its tokens.
type counting uint8

const (
	nothing     counting = iota
	allowedOnly          // the limiters of a Joint count an allowed request
	refusedToo           // they also count a refused one, and CountRefused applies
)

// waitMember is a member whose callers can wait.
type waitMember interface {
	member
	// waitTaken is Wait for at most maxWait, and returns what it took. It does not know shadow
	// mode. w is the waiter of a gate that the limiter has refused, or nil.
	waitTaken(ctx context.Context, n int, maxWait time.Duration, w *waiter) (taken, error)
}

// wait is the method Wait of a limiter.
func wait(ctx context.Context, m waitMember, n int) (err error) {
	if !m.isShadow() {
		_, err = m.waitTaken(ctx, n, Never, nil)
	} else if err = ctx.Err(); err == nil {
		m.Take(n) // which shadow mode allows
	}
	return err
}

func asMember(l Limiter) member {
	if m, ok := l.(member); ok && m.isItself(l) {
		return m
	}
	if c, ok := l.(interface {
		Inside(k friend.Key) friend.Limiter[Result]
	}); ok {
		if inside := c.Inside(friend.Key{}); inside.IsItself(l) {
			return countingLimiter{externalLimiter{l}, inside}
		}
	}
	return externalLimiter{l}
}

func (b *TokenBucket) isItself(l any) bool { return l == any(b) }
func (b *LeakyBucket) isItself(l any) bool { return l == any(b) }
func (l *Window) isItself(other any) bool  { return other == any(l) }
func (j *Joint) isItself(l any) bool       { return l == any(j) }

func (k Keyed[K]) isItself(l any) bool {
	_, ok := l.(Keyed[K])
	if !ok {
		_, ok = l.(*Keyed[K])
	}
	return ok
}

func (b *TokenBucket) restartIfNew(t time.Time, tolerance time.Duration) bool {
	return b.restart(t.Sub(b.epoch), tolerance)
}

func (j *Joint) restartIfNew(t time.Time, tolerance time.Duration) (restarted bool) {
	for _, m := range j.members {
		restarted = m.restartIfNew(t, tolerance) || restarted
	}
	return restarted
}

func (externalLimiter) restartIfNew(time.Time, time.Duration) bool { return false }

func (b *TokenBucket) takenAt(t time.Time, n int) taken {
	return taken{n: n, at: t.Sub(b.epoch), end: alwaysFull, limits: &b.state.Load().limits}
}

func (b *LeakyBucket) takenAt(t time.Time, n int) taken {
	return taken{n: n, at: t.Sub(b.epoch), end: alwaysFull, limits: &b.pace}
}

func (l *Window) takenAt(t time.Time, n int) taken {
	return taken{n: n, at: t.Sub(l.epoch)}
}

func (j *Joint) takenAt(t time.Time, n int) taken {
	all := taken{n: n}
	for _, m := range j.members {
		all.parts = append(all.parts, m.takenAt(t, n))
	}
	return all
}

func (k Keyed[K]) takenAt(t time.Time, n int) taken {
	var p keyPosition[K]
	k.group.locate(&p, k.key)
	p.shard.mu.Lock()
	hasBucket := p.bucket(p.tierTable().buckets.Find(p.hash, k.key)) != nil
	p.shard.mu.Unlock()
	return k.takenFrom(t, n, !hasBucket)
}

// takenFrom is takenAt if it is known whether the tokens were taken from the bucket that all keys
// without room share.
func (k Keyed[K]) takenFrom(t time.Time, n int, shared bool) taken {
	g := k.group
	var p keyPosition[K]
	g.locate(&p, k.key)
	if shared && g.shareNew {
		all := g.shared[p.tier].takenAt(t, n)
		all.shared = g.shared[p.tier]
		return all
	}
	return taken{n: n, at: t.Sub(g.epoch), end: alwaysFull, limits: g.tiers[p.tier].Load()}
}

func (j *Joint) peek(t time.Time, ahead int64, n int) Result {
	waiting := j.queue.waitingTokens.Load()
	r := j.peekAll(t, ahead+waiting, n)
	if waiting != 0 {
		refuseBehindWaiters(&r, n)
	}
	return r
}

func (j *Joint) tryTake(t time.Time, n int, c counting) (r Result, back taken) {
	if j.queue.waitingTokens.Load() != 0 {
		return j.peek(t, 0, n), back
	}
	r = j.takeOrRestart(&back, t, n, c, clock.ReadTolerance)
	return r, back
}

func (j *Joint) putBack(now time.Time, back taken, n int) taken {
	j.putBackTo(now, back.parts, n)
	back.use(n)
	j.queue.wakeFirst()
	return back
}

// charge charges the limiters from which tokens were taken.
func (j *Joint) charge(now time.Time, back taken, n int) {
	for i, part := range back.parts {
		if !part.none {
			j.members[i].charge(now, part, n)
		}
	}
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
		if k, ok := m.(interface{ lacksRoom(n int) bool }); ok && k.lacksRoom(n) {
			return true
		}
	}
	return false
}

// maxKeys returns the MaxKeys of the first of the limiters that is a key without room.
func (j *Joint) maxKeys() int {
	for _, m := range j.members {
		if m.peek(time.Now(), 0, 1).NoRoom {
			return maxKeysOf(m)
		}
	}
	return 0
}

// maxKeysOf returns the GroupConfig.MaxKeys that leaves no room for the key of a limiter, or 0 if
// it is unknown.
func maxKeysOf(l any) int {
	if k, ok := l.(interface{ maxKeys() int }); ok {
		return k.maxKeys()
	}
	return 0
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
	r := f.takeAt(t, 0)
	if n < 0 || r.Remaining < n { // a refusal changes nothing, and says when to retry
		if r = f.takeAt(t, n); r.OK {
			f.refund(t, n) // the tokens have just become available
		}
	}
	return r
}

func (f externalLimiter) takeAt(t time.Time, n int) Result {
	if timed, ok := f.Limiter.(TimedLimiter); ok {
		return timed.TakeAt(t, n)
	}
	return f.Take(n)
}

func (f externalLimiter) tryTake(t time.Time, n int, _ counting) (r Result, back taken) {
	if r = f.takeAt(t, n); r.OK && r.RetryAfter <= 0 { // otherwise shadow mode has taken nothing
		back = f.takenAt(t, n)
	}
	return r, back
}

func (f externalLimiter) takenAt(t time.Time, n int) taken { return taken{n: max(n, 0), when: t} }

func (f externalLimiter) refund(taken time.Time, n int) {
	switch l := f.Limiter.(type) {
	case interface{ Refund(time.Time, int) }:
		l.Refund(taken, n)
	case member: // embedded
		l.putBack(time.Now(), l.takenAt(taken, n), n)
	}
}

func (externalLimiter) isItself(any) bool { return true }

func (f externalLimiter) putBack(_ time.Time, back taken, n int) taken {
	f.refund(back.when, back.use(n))
	return back
}

func (f externalLimiter) Hold(d time.Duration) {
	if h, ok := f.Limiter.(holder); ok {
		h.Hold(d)
	}
}

// charge takes as many of the tokens as there are, if the limiter has no method Charge.
func (f externalLimiter) charge(now time.Time, back taken, n int) {
	switch l := f.Limiter.(type) {
	case interface{ Charge(int) }:
		l.Charge(n)
	case member: // embedded
		all := l.takenAt(back.when, back.n)
		all.shared = nil // a key that has been evicted since is not one that had no room
		settle(l, now, all, back.n+n)
	default:
		f.Take(min(n, max(f.Take(0).Remaining, 0)))
	}
}

func (externalLimiter) isShadow() bool                              { return false }
func (externalLimiter) record(r Result, _ int) Result               { return r }
func (externalLimiter) refusedByJoint(time.Time, int, Result, bool) {}
func (externalLimiter) subscribe(wakeup)                            {}
func (externalLimiter) unsubscribe(wakeup)                          {}

// countingLimiter is a limiter of another package of this module that counts its requests.
type countingLimiter struct {
	externalLimiter
	inside friend.Limiter[Result]
}

func (c countingLimiter) peek(t time.Time, ahead int64, n int) Result {
	return c.inside.PeekAt(t, ahead, n)
}

func (c countingLimiter) tryTake(t time.Time, n int, _ counting) (r Result, back taken) {
	if r = c.inside.TakeAt(t, n); r.OK {
		back = c.takenAt(t, n)
	}
	return r, back
}

func (c countingLimiter) isShadow() bool                { return c.inside.IsShadow() }
func (c countingLimiter) record(r Result, n int) Result { return c.inside.Record(r, n) }

func (c countingLimiter) refusedByJoint(_ time.Time, n int, r Result, _ bool) {
	if !r.OK && !c.isShadow() {
		c.inside.Record(r, n)
	}
}

func (c countingLimiter) maxKeys() int { return c.inside.MaxKeys() }

func (c countingLimiter) lacksRoom(n int) bool { return c.peek(time.Now(), 0, n).NoRoom }

// wakeup is a channel that makes the first waiter of another queue try again. It has room for one
// signal, and send never blocks.
type wakeup chan struct{}

func (w wakeup) send() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// setChanged sets the channel w that wakes the first waiter. There is no waiter yet.
func (q *waitQueue) setChanged(w wakeup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed = w
}

// subscribe makes the queue send to w whenever its limiter may have more tokens.
func (q *waitQueue) subscribe(w wakeup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.subscribers = append(q.subscribers, w)
	q.subscriberCount.Add(1)
}

// unsubscribe ends one subscription.
func (q *waitQueue) unsubscribe(w wakeup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.subscribers, w); i >= 0 {
		q.subscribers = slices.Delete(q.subscribers, i, i+1)
		q.subscriberCount.Add(-1)
	}
}

func (q *waitQueue) notify() {
	for _, w := range q.subscribers {
		w.send()
	}
}
