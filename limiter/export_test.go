package limiter

import "time"

// Twins that take a time, for tests of histories.

func (b *TokenBucket) HoldAt(t time.Time, d time.Duration) { b.hold(t.Sub(b.epoch), d) }

func (g *Group[K]) HoldAt(t time.Time, key K, d time.Duration) { g.hold(t.Sub(g.epoch), key, d) }

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
