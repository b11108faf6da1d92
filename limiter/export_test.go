package limiter

import "time"

// Unexported methods with a time, for tests.

func (b *TokenBucket) TakeFast(at time.Duration, n int) bool { return b.takeFast(at, n) }

func (b *TokenBucket) SetRateAt(t time.Time, r Rate) error { return b.setRateAt(t.Sub(b.epoch), r) }

func (b *TokenBucket) SetBurstAt(t time.Time, n int) error { return b.setBurstAt(t.Sub(b.epoch), n) }

func (b *TokenBucket) TokensAt(t time.Time) float64 { return b.tokensAt(t.Sub(b.epoch)) }

func (b *TokenBucket) ReserveAt(t time.Time, n int, limit time.Duration) *Reservation {
	return b.reserveAt(t.Sub(b.epoch), n, limit)
}

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
