package limiter

import (
	"context"
	"time"
)

// Keyed is the limiter of one key of a [Group]: a [TimedLimiter] and a [WaitLimiter]. It is a small value without state of
// its own, and making one allocates nothing: all values of one key are the same limiter. Make one with [Group.Get]; the zero
// value is not usable.
//
// All methods are safe for concurrent use; only Wait and WaitAtMost block.
type Keyed[K comparable] struct {
	group *Group[K]
	key   K
}

// Get returns the limiter of the key. The key is not remembered before it is used.
func (g *Group[K]) Get(key K) Keyed[K] { return Keyed[K]{group: g, key: key} }

// Take takes n tokens of the key, all or none. In shadow mode the result is OK also if none were taken, with the numbers of
// the refusal.
func (k Keyed[K]) Take(n int) (r Result) {
	k.group.take(&r, k.now(), k.key, n)
	k.group.count(&r, n)
	return r
}

// TakeAt is Take at a given time.
func (k Keyed[K]) TakeAt(t time.Time, n int) (r Result) {
	k.group.take(&r, t.Sub(k.group.epoch), k.key, n)
	k.group.count(&r, n)
	return r
}

// Wait takes n tokens of the key as soon as there are that many, and returns nil then: see [TokenBucket.Wait]. Each key has
// a queue of its own.
func (k Keyed[K]) Wait(ctx context.Context, n int) error { return k.WaitAtMost(ctx, n, Never) }

// WaitAtMost is Wait that gives up at once, with a *LimitedError, if it would take longer than maxWait. Nobody waits for a
// key for which there is no room, as it is not known when there will be room; but if such keys share a bucket, callers wait
// for that bucket.
func (k Keyed[K]) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g := k.group
	if g.statistics == nil {
		return g.waitAtMost(ctx, k.key, n, maxWait)
	}
	var r Result
	g.take(&r, k.now(), k.key, n)
	if r.OK || g.shadows() {
		g.count(&r, n)
	}
	if r.OK || peeked(r, n) {
		return nil
	}
	return g.await(n, func() error { return g.waitAtMost(ctx, k.key, n, maxWait) })
}

// Refund gives n tokens back to the key, as if they had never been taken. A key for which there is no room gives them back
// to the bucket that it shares.
func (k Keyed[K]) Refund(n int) { k.giveBack(k.group.owed(n)) }

// Hold admits nothing for the key for d, and begins again with one token after that: see [TokenBucket.Hold]. A key is held
// whether or not there is room for it, in any tier; but while MaxKeys of them are held, no other is.
func (k Keyed[K]) Hold(d time.Duration) { k.group.hold(k.now(), k.key, d) }

func (k Keyed[K]) now() time.Duration { return time.Since(k.group.epoch) }

func (k Keyed[K]) peek(r *Result, t time.Time, ahead int64, n int) {
	k.group.look(r, t.Sub(k.group.epoch), k.key, ahead, n)
}

func (k Keyed[K]) attempt(t time.Time, n int) (r Result) {
	k.group.take(&r, t.Sub(k.group.epoch), k.key, n)
	return r
}

func (k Keyed[K]) try(n int) Result                  { return k.attempt(time.Now(), n) }
func (k Keyed[K]) giveBack(n int)                    { k.group.giveBack(k.key, n) }
func (k Keyed[K]) shade(r *Result, n int)            { k.group.shade(r, n) }
func (k Keyed[K]) count(r *Result, n int)            { k.group.count(r, n) }
func (k Keyed[K]) refuse(t time.Time, n int, _ bool) { k.group.countRefusal(k, t, n) }

func (k Keyed[K]) lacksRoom(n int) bool {
	_, room := k.group.hasRoom(k.key, n)
	return !room && k.group.overflow == RefuseNew
}

// watch keeps the queue of the key for as long as somebody watches it.
func (k Keyed[K]) watch(b bell) {
	if k.key == k.key { //nolint:gocritic // a NaN is not, and its queue would never be found again
		k.group.lines.enter(k.key, k.group.maxWaiters).watch(b)
	}
}

func (k Keyed[K]) unwatch(b bell) {
	if q := k.group.lines.of(k.key); q != nil {
		q.unwatch(b)
		k.group.lines.leave(k.key, q)
	}
}
