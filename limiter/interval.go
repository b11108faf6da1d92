package limiter

import (
	"math"
	"time"
)

// intervalOf returns the time after which a limiter has one token more, on average, or 0 if that is
// not known.
func intervalOf(l any) time.Duration {
	if p, ok := l.(interface{ interval() time.Duration }); ok {
		return p.interval()
	}
	return 0
}

func (b *TokenBucket) interval() time.Duration { return b.state.Load().interval() }

func (k Keyed[K]) interval() time.Duration {
	var p keyPosition[K]
	k.group.locate(&p, k.key)
	return k.group.tiers[p.tier].Load().interval()
}

func (l *windowLimiter) interval() time.Duration { return l.window / time.Duration(max(l.limit, 1)) }

func (l *limits) interval() time.Duration {
	if l.counted == 0 || l.burst == math.MaxInt {
		return 0
	}
	return l.until(l.units(0)+l.cost, 0)
}
