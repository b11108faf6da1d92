package guava

import "math"

// curve is the arithmetic of Guava's SmoothRateLimiter: each request waits for the cost of the one
// before, and unused permits are stored.
//
// Times are in microseconds and are rounded where Guava rounds. Products are converted to float64,
// so that the compiler does not fuse them with an addition, which would round differently.
type curve struct {
	interval float64 // between two fresh permits
	next     int64   // the time from which the next request may proceed
	stored   float64 // permits
	max      float64 // the most stored permits

	burst float64 // without a warm-up: the seconds whose permits are stored

	// With a warm-up, stored permits cost more than fresh ones:
	warmUp     float64 // 0 for none
	coldFactor float64 // how many times more the last stored permit costs
	threshold  float64 // stored permits up to this number cost as much as fresh ones
	slope      float64
}

// setRate changes the rate. The time of the next request does not change, and the stored permits
// keep their proportion to the maximum.
func (c *curve) setRate(now int64, perSecond float64) {
	c.advance(now)
	before := c.max
	c.interval = 1e6 / perSecond
	initial := 0.0
	if c.warmUp > 0 {
		coldInterval := c.interval * c.coldFactor
		c.threshold = 0.5 * c.warmUp / c.interval
		c.max = c.threshold + 2*c.warmUp/(c.interval+coldInterval)
		c.slope = (coldInterval - c.interval) / (c.max - c.threshold)
		initial = c.max
	} else {
		c.max = c.burst * perSecond
	}
	if before == 0 {
		c.stored = initial
		return
	}
	c.stored = c.stored * c.max / before
}

// advance stores the permits that were not used until now.
func (c *curve) advance(now int64) {
	if now <= c.next {
		return
	}
	if c.interval > 0 {
		c.stored = math.Min(c.max, c.stored+float64(now-c.next)/c.storeInterval())
	}
	c.next = now
}

// storeInterval returns how long it takes to store a permit.
func (c *curve) storeInterval() float64 {
	if c.warmUp > 0 {
		return c.warmUp / c.max
	}
	return c.interval
}

// takePermits makes a request for n permits. It may proceed at the value that next had before the
// request.
func (c *curve) takePermits(now int64, n float64) {
	c.advance(now)
	fromStored := math.Min(n, c.stored)
	fresh := n - fromStored
	c.next = addMicros(c.next, addMicros(c.costOfStored(fromStored), wholeMicros(fresh*c.interval)))
	c.stored -= fromStored
}

// costOfStored returns what n of the stored permits cost: the area under the line that rises from
// the threshold on.
func (c *curve) costOfStored(n float64) (cost int64) {
	if c.warmUp == 0 {
		return 0
	}
	if above := c.stored - c.threshold; above > 0 {
		k := math.Min(above, n)
		length := c.intervalAt(above) + c.intervalAt(above-k)
		cost = wholeMicros(k * length / 2)
		n -= k
	}
	return addMicros(cost, wholeMicros(c.interval*n))
}

// intervalAt returns the height of the line at a number of permits above the threshold.
func (c *curve) intervalAt(above float64) float64 { return c.interval + float64(above*c.slope) }

// wholeMicros returns x without its fraction, or the longest time if x is too large or a NaN.
func wholeMicros(x float64) int64 {
	if x < math.MaxInt64 {
		return int64(x)
	}
	return math.MaxInt64
}

// addMicros returns a+b, at most the longest time. b must be at least 0.
func addMicros(a, b int64) int64 { return a + min(b, math.MaxInt64-max(a, 0)) }
