package limiter

import (
	"context"
	"time"
)

// Constructors and methods with a time, for tests.

func NewTokenBucketAt(c TokenBucketConfig, t0 time.Time) *TokenBucket { return newTokenBucket(c, t0) }

func NewLeakyBucketAt(c LeakyBucketConfig, t0 time.Time) *LeakyBucket { return newLeakyBucket(c, t0) }

func NewGroupAt[K comparable](c GroupConfig[K], t0 time.Time) *Group[K] { return newGroup(c, t0) }

func NewFixedWindowAt(c WindowConfig, t0 time.Time) *Window { return newFixedWindow(c, t0) }

func NewSlidingWindowAt(c WindowConfig, t0 time.Time) *Window { return newSlidingWindow(c, t0) }

func NewSlidingLogAt(c WindowConfig, t0 time.Time) *Window { return newSlidingLog(c, t0) }

func (b *TokenBucket) TakeFast(at time.Duration, n int) bool { return b.takeFast(at, n) }

func (b *TokenBucket) SetRateAt(t time.Time, r Rate) error { return b.setRateAt(t.Sub(b.epoch), r) }

func (b *TokenBucket) SetBurstAt(t time.Time, n int) error { return b.setBurstAt(t.Sub(b.epoch), n) }

func (b *TokenBucket) TokensAt(t time.Time) float64 { return b.tokensAt(t.Sub(b.epoch)) }

func (b *TokenBucket) ReserveAt(t time.Time, n int, limit time.Duration) *Reservation {
	return b.reserveAt(t.Sub(b.epoch), n, limit)
}

// CancelAt is Refund of all tokens before the time to act.
func (r *Reservation) CancelAt(t time.Time) bool { return r.OK && r.cancelAt(t.Sub(r.bucket.epoch)) }

func (b *TokenBucket) HoldAt(t time.Time, d time.Duration) { b.holdAt(t.Sub(b.epoch), d) }

func (k Keyed[K]) HoldAt(t time.Time, d time.Duration) {
	k.group.holdAt(t.Sub(k.group.epoch), k.key, d)
}

func (g *Group[K]) Evictions() int64 { return g.evictions() }

func (g *Group[K]) Limit() (tokens int, period time.Duration) { return g.limit() }

// PeriodOf returns the time to which the limit of a limiter refers.
func PeriodOf(l Limiter) time.Duration { return periodOf(l) }

// SetLimits changes the limits of keys without a tier.
func (g *Group[K]) SetLimits(t Tier) error { return g.SetLimitsAt(time.Now(), t) }

func (g *Group[K]) SetLimitsAt(at time.Time, t Tier) error { return g.SetTierAt(at, -1, t) }

func (g *Group[K]) SetTierAt(at time.Time, i int, t Tier) error {
	if err := t.validate(); err != nil {
		return err
	}
	g.setTier(at.Sub(g.epoch), i+1, t)
	return nil
}

func (g *Group[K]) ReconfigureAt(t time.Time, c GroupConfig[K]) error {
	return g.reconfigureAt(t.Sub(g.epoch), c)
}

// WaitAtMost waits for at most maxWait, as gates do.
func WaitAtMost(ctx context.Context, l WaitLimiter, n int, maxWait time.Duration) error {
	_, err := waitReserve(ctx, l, n, maxWait, nil)
	return err
}

// ReserveAt is Reserve at a time.
func ReserveAt(l Limiter, t time.Time, n int) *Reservation {
	r := inside{}.Reserve(l, t, n, false)
	return &r
}

// RefundAt is Refund at a time.
func (r *Reservation) RefundAt(t time.Time, n int) { r.refundAt(t, n) }

// RefundAt gives back n tokens that were taken from windows at a time, and tokens of other limiters
// as Refund does.
func RefundAt(l Limiter, t time.Time, n int) {
	switch l := l.(type) {
	case interface{ refundAt(t time.Time, n int) }:
		l.refundAt(t, n)
	case *Joint:
		for _, m := range l.members {
			RefundAt(m, t, n)
		}
		l.queue.wakeFirst()
	default:
		Refund(l, n)
	}
}

func (l *Window) refundAt(t time.Time, n int) {
	if n > 0 {
		l.putBack(t, taken{n: n, at: t.Sub(l.epoch)}, n)
	}
}

// Refund calls the method Refund of a limiter.
func Refund(l Limiter, n int) {
	switch l := l.(type) {
	case interface{ Refund(n int) }:
		l.Refund(n)
	case interface{ RefundNow(n int) }:
		l.RefundNow(n)
	case interface{ Refund(taken time.Time, n int) }:
		l.Refund(time.Now(), n)
	}
}

// The methods Refund give back n tokens as if they had been taken at this moment, when the limiter
// was in its present state. They test the arithmetic of refunds, and the effects of a refund on
// others, without a Reservation.

// justTaken is n tokens that are still missing in full.
func justTaken(n int, l *limits) taken {
	return taken{n: n, at: lastPosition, end: lastPosition, limits: l}
}

func (b *TokenBucket) Refund(n int) {
	if n > 0 && !b.isShadow() {
		back := justTaken(n, &b.state.Load().limits)
		back.at = b.state.Load().last
		b.putBack(b.epoch.Add(-maxWindow), back, n)
	}
}

func (l *Window) Refund(n int) {
	if n > 0 {
		back := justTaken(n, nil)
		l.putBack(time.Time{}, back, n)
	}
}

func (b *LeakyBucket) Refund(n int) {
	if n > 0 {
		back := justTaken(n, &b.pace)
		b.putBack(b.epoch.Add(-maxWindow), back, n)
	}
}

func (j *Joint) Refund(n int) {
	for _, m := range j.members {
		if e, ok := m.(externalLimiter); ok {
			e.refund(time.Now(), n)
		} else {
			Refund(m, n)
		}
	}
	j.queue.wakeFirst()
}

func (k Keyed[K]) RefundNow(n int) {
	if n < 1 {
		return
	}
	var p keyPosition[K]
	k.group.locate(&p, k.key)
	back := justTaken(n, p.tierTable().limits)
	if g := k.group; !g.knows(&p) && g.shareNew && g.keyCount.Load() >= g.maxKeys {
		g.shared[p.tier].Refund(n)
		return
	}
	k.putBack(k.group.epoch.Add(-maxWindow), back, n)
}

func (g *Group[K]) knows(p *keyPosition[K]) bool {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.tierTable().buckets.Find(p.hash, p.key) != nil
}
