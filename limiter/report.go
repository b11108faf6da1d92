package limiter

import (
	"time"

	"github.com/weir-go/weir/internal/report"
)

// The live page shows the limit of a limiter as it was configured through this function.
var _ = func() bool {
	report.RateOf = func(source any) (events float64, per time.Duration, burst int) {
		l, ok := source.(interface{ configured() (Rate, int) })
		if !ok {
			return 0, 0, 0
		}
		rate, burst := l.configured()
		if rate == Unlimited() {
			return 0, 0, 0
		}
		return rate.events, rate.per, burst
	}
	return true
}()

// configured returns the rate as it was configured, and the burst.
func (b *TokenBucket) configured() (Rate, int) {
	s := b.state.Load()
	return s.rate, s.burst
}

// configured returns the rate and the burst of a key without a tier.
func (g *Group[K]) configured() (Rate, int) { return g.first.Load().Rate, g.tiers[0].Load().burst }
