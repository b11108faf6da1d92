package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/sentinel"
)

// Keyed is the limiter of one key of a [Group], from [Group.Get]. It is a small value without
// state: all values of one key are the same limiter. The zero value is not usable.
//
// All methods are safe for concurrent use. Only Wait and WaitAtMost block.
type Keyed[K comparable] struct {
	group *Group[K]
	key   K
}

// Take takes n tokens of the key, or none if there are fewer. In shadow mode the result is always
// OK, with the numbers of the refusal if no tokens were taken.
func (k Keyed[K]) Take(n int) (r Result) {
	k.group.take(&r, nil, time.Since(k.group.epoch), clock.ReadTolerance, k.key, n)
	if k.group.statistics == nil {
		return r // without a copy of it
	}
	return k.record(r, n)
}

// TakeAt is Take at the time t.
func (k Keyed[K]) TakeAt(t time.Time, n int) (r Result) {
	k.group.take(&r, nil, t.Sub(k.group.epoch), clock.GivenTolerance, k.key, n)
	return k.record(r, n)
}

// Wait takes n tokens of the key as soon as there are that many. See [TokenBucket.Wait]. Each key
// has a queue of its own.
func (k Keyed[K]) Wait(ctx context.Context, n int) error { return k.WaitAtMost(ctx, n, Never) }

// WaitAtMost is like Wait but returns a *[LimitedError] at once if the wait would exceed maxWait.
// It also does so if there is no room for the key and Overflow is RefuseNew.
func (k Keyed[K]) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	if k.isShadow() {
		return takeWithoutWait(ctx, k, n)
	}
	_, err := k.waitTaken(ctx, n, maxWait)
	return err
}

func (k Keyed[K]) waitTaken(ctx context.Context, n int, maxWait time.Duration) (taken, error) {
	t, err := k.group.wait(ctx, k.key, n, maxWait)
	if n != 0 && errors.Is(err, sentinel.ErrRefused) {
		k.group.busiest.Add(k.key)
	}
	return t, err
}

// Hold refuses all requests of the key for d: see [TokenBucket.Hold]. It needs no room for the key,
// and applies in every tier. While MaxKeys keys are held, no further key can be held, and the
// metric weir.limiter.no_room counts the attempt.
func (k Keyed[K]) Hold(d time.Duration) { k.group.holdAt(time.Since(k.group.epoch), k.key, d) }

func (k Keyed[K]) peek(t time.Time, ahead int64, n int) (r Result) {
	k.group.peek(&r, t.Sub(k.group.epoch), k.key, ahead, n)
	return r
}

func (k Keyed[K]) tryTake(t time.Time, n int, _ counting) (r Result, back taken) {
	k.group.take(&r, &back, t.Sub(k.group.epoch), clock.ReadTolerance, k.key, n)
	return r, back
}

func (k Keyed[K]) record(r Result, n int) Result {
	if !r.OK && n != 0 {
		k.group.busiest.Add(k.key)
	}
	return k.group.record(r, n)
}

func (k Keyed[K]) restartIfNew(t time.Time, tolerance time.Duration) bool {
	g, at := k.group, t.Sub(k.group.epoch)
	var p keyPosition[K]
	g.locate(&p, k.key)
	p.shard.mu.Lock()
	latest := p.shard.latest
	p.shard.mu.Unlock()
	isNew := clock.IsNew(g.epoch, at, latest, tolerance)
	if isNew {
		g.restart(at)
	}
	return isNew
}

func (k Keyed[K]) isShadow() bool { return k.group.isShadow() }

func (k Keyed[K]) putBack(now time.Time, back taken, n int) taken {
	return k.group.putBack(now, k.key, back, n)
}

func (k Keyed[K]) refusedByJoint(_ time.Time, n int, r Result, _ bool) {
	k.group.recordRefusal(r, n)
	if !r.OK && n != 0 && !k.isShadow() {
		k.group.busiest.Add(k.key)
	}
}

func (k Keyed[K]) maxKeys() int { return k.group.MaxKeys() }

func (k Keyed[K]) lacksRoom(n int) bool {
	_, room := k.group.hasRoom(k.key, n)
	return !room && k.group.overflow == RefuseNew
}

// subscribe keeps the queue of the key until unsubscribe.
func (k Keyed[K]) subscribe(w wakeup) {
	if k.key == k.key { //nolint:gocritic // the queue of a NaN would never be found again
		k.group.queues.acquire(k.key, k.group).subscribe(w)
	}
}

func (k Keyed[K]) unsubscribe(w wakeup) {
	if q := k.group.queues.of(k.key); q != nil {
		q.unsubscribe(w)
		k.group.queues.release(k.key, q)
	}
}
