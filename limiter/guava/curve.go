package guava

import "math"

// curve is the arithmetic of Guava's SmoothRateLimiter, to the microsecond: each request waits
// for what the one before it cost, and what was not used is stored.
//
// Times are microseconds; all is rounded where Guava rounds. Products are converted to
// float64 by themselves, so that no compiler fuses them with what is added to them.
type curve struct {
	interval float64 // between two fresh permits
	next     int64   // the time from which the next request may go
	stored   float64 // permits
	max      float64 // the most that are stored

	burst float64 // seconds of permits that are stored, where stored ones are free

	// Where stored permits cost more the longer they have lain: see [SmoothWarmingUp].
	warmup    float64 // 0 for the other kind
	cold      float64 // how much more the coldest costs
	threshold float64 // stored permits up to which they cost no more than fresh ones
	slope     float64
}

// setRate changes the rate at a time. What was promised stays; stored permits keep their share of the most.
func (c *curve) setRate(now int64, perSecond float64) {
	c.sync(now)
	before := c.max
	c.interval = 1e6 / perSecond
	full := 0.0
	if c.warmup > 0 {
		cold := c.interval * c.cold
		c.threshold = 0.5 * c.warmup / c.interval
		c.max = c.threshold + 2*c.warmup/(c.interval+cold)
		c.slope = (cold - c.interval) / (c.max - c.threshold)
		full = c.max
	} else {
		c.max = c.burst * perSecond
	}
	if before == 0 {
		c.stored = full
		return
	}
	c.stored = c.stored * c.max / before
}

// sync stores the permits that nobody wanted until now.
func (c *curve) sync(now int64) {
	if now <= c.next {
		return
	}
	if c.interval > 0 {
		c.stored = math.Min(c.max, c.stored+float64(now-c.next)/c.cooldown())
	}
	c.next = now
}

// cooldown is how long it takes to store a permit.
func (c *curve) cooldown() float64 {
	if c.warmup > 0 {
		return c.warmup / c.max
	}
	return c.interval
}

// reserve makes a request for n, which may go at the time that next was until now.
func (c *curve) reserve(now int64, n float64) {
	c.sync(now)
	old := math.Min(n, c.stored)
	fresh := n - old
	c.next = plus(c.next, plus(c.thaw(old), micros(fresh*c.interval)))
	c.stored -= old
}

// thaw is what n of the stored permits cost: the area under the line that rises from the threshold on.
func (c *curve) thaw(n float64) (cost int64) {
	if c.warmup == 0 {
		return 0
	}
	if above := c.stored - c.threshold; above > 0 {
		k := math.Min(above, n)
		length := c.price(above) + c.price(above-k)
		cost = micros(k * length / 2)
		n -= k
	}
	return plus(cost, micros(c.interval*n))
}

func (c *curve) price(above float64) float64 { return c.interval + float64(above*c.slope) }

// micros is x without its fraction, within an int64; what is not a number is forever.
func micros(x float64) int64 {
	if x < math.MaxInt64 {
		return int64(x)
	}
	return math.MaxInt64
}

// plus adds a time of at least 0, up to the longest there is.
func plus(a, b int64) int64 { return a + min(b, math.MaxInt64-max(a, 0)) }
