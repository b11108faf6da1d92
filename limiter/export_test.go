package limiter

import "time"

// What users do not need, and tests do: twins that take a time, and what a gate uses.

func (b *TokenBucket) AdmitAfter(d time.Duration, n int) bool { return b.takeAfter(d, n) }

func (b *TokenBucket) SetRateAt(t time.Time, r Rate) error { return b.setRate(t.Sub(b.epoch), r) }

func (b *TokenBucket) SetBurstAt(t time.Time, n int) error { return b.setBurst(t.Sub(b.epoch), n) }

func (g *Group[K]) Evictions() int64 { return g.evictions() }

func (g *Group[K]) Limit() (tokens int, period time.Duration) { return g.limit() }

// PeriodOf is the time to which the limit of a limiter refers.
func PeriodOf(l Limiter) time.Duration { return periodOf(l) }

func (b *TokenBucket) HoldAt(t time.Time, d time.Duration) { b.hold(t.Sub(b.epoch), d) }

func (k Keyed[K]) HoldAt(t time.Time, d time.Duration) { k.group.hold(t.Sub(k.group.epoch), k.key, d) }

func (g *Group[K]) SetDefaultTierAt(at time.Time, t Tier) error {
	if err := t.validate(); err != nil {
		return err
	}
	g.setTier(at.Sub(g.epoch), 0, t)
	return nil
}

func (g *Group[K]) SetTierAt(at time.Time, i int, t Tier) error {
	if err := t.validate(); err != nil {
		return err
	}
	g.setTier(at.Sub(g.epoch), i+1, t)
	return nil
}

func (g *Group[K]) ReconfigureAt(t time.Time, c GroupConfig[K]) error {
	return g.reconfigure(t.Sub(g.epoch), c)
}
