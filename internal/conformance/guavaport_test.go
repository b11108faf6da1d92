package conformance_test

import "math"

// guavaLimiter is the arithmetic of Guava's SmoothRateLimiter, float by float. Times are
// microseconds. Products are converted to float64, so that no compiler fuses them with a sum.
type guavaLimiter struct {
	bursty       bool
	warmup, cold float64

	stable           float64 // between two permits
	stored, max      float64
	threshold, slope float64
	next             int64
}

func (g *guavaLimiter) setRate(now int64, rate float64) (failed *string) {
	if !(rate > 0) {
		text := "IllegalArgumentException: rate must be positive"
		return &text
	}
	g.refill(now)
	g.stable = 1e6 / rate
	before, whole := g.max, 0.0
	if g.bursty {
		if g.max = rate; math.IsInf(before, 1) {
			g.stored = g.max
			return nil
		}
	} else {
		cold := float64(g.stable * g.cold)
		g.threshold = 0.5 * g.warmup / g.stable
		g.max = g.threshold + 2*g.warmup/(g.stable+cold)
		g.slope = (cold - g.stable) / (g.max - g.threshold)
		if whole = g.max; math.IsInf(before, 1) {
			g.stored = 0
			return nil
		}
	}
	if before == 0 {
		g.stored = whole
	} else {
		g.stored = g.stored * g.max / before
	}
	return nil
}

func (g *guavaLimiter) refill(now int64) {
	if now <= g.next {
		return
	}
	cooldown := g.stable
	if !g.bursty {
		cooldown = g.warmup / g.max
	}
	g.stored = math.Min(g.max, g.stored+float64(now-g.next)/cooldown)
	g.next = now
}

// reserve returns the time to wait.
func (g *guavaLimiter) reserve(now int64, n int) int64 {
	g.refill(now)
	wait := max(g.next-now, 0)
	old := math.Min(float64(n), g.stored)
	cost := g.costOfStored(old) + toLong((float64(n)-old)*g.stable)
	if g.next += cost; g.next < 0 && cost > 0 {
		g.next = math.MaxInt64
	}
	g.stored -= old
	return wait
}

// costOfStored returns the time that n stored permits cost.
func (g *guavaLimiter) costOfStored(n float64) (cost int64) {
	if g.bursty {
		return 0
	}
	if above := g.stored - g.threshold; above > 0 {
		k := math.Min(above, n)
		length := g.storedPrice(above) + g.storedPrice(above-k)
		cost = toLong(k * length / 2)
		n -= k
	}
	return cost + toLong(g.stable*n)
}

func (g *guavaLimiter) storedPrice(above float64) float64 { return g.stable + float64(above*g.slope) }

// toLong converts as Java does.
func toLong(x float64) int64 {
	switch {
	case x != x:
		return 0
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}
