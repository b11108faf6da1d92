package limiter

import (
	"time"

	"github.com/weir-go/weir/internal/report"
)

// reportLimiter says when a limiter has a free token, and its limit as it was configured, for the
// live page.
func reportLimiter(source any) (r report.Limiter) {
	if l, ok := source.(member); ok {
		r.FreeIn = l.peek(time.Now(), 0, 1).RetryAfter
	}
	rate, burst := Unlimited(), 0
	switch l := source.(type) {
	case interface{ configured() (Rate, int) }:
		rate, burst = l.configured()
	case interface{ Limit() (Rate, int) }: // of package fleet
		rate, burst = l.Limit()
	}
	if rate != Unlimited() {
		r.Events, r.Per, r.Burst = rate.events, rate.per, burst
	}
	return r
}

// configured returns the rate as it was configured, and the burst.
func (b *TokenBucket) configured() (Rate, int) {
	s := b.state.Load()
	return s.rate, s.burst
}

// configured returns the rate and the burst of a key without a tier.
func (g *Group[K]) configured() (Rate, int) { return g.first.Load().Rate, g.tiers[0].Load().burst }
