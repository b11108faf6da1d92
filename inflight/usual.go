package inflight

import "time"

// usualLatency estimates the median latency of successes while nothing is wrong. The median does
// not care how long the long calls are. Each success moves the estimate by a small share (Robbins
// and Monro, 1951), at most by a factor of e per minute, so it does not follow an overload.
type usualLatency struct {
	n      int // successes
	median float64
	known  bool
	last   time.Duration
}

const (
	// The first learnUntil successes move the estimate by one over their number.
	learnUntil = 64
	knownAfter = 20
	memory     = time.Minute
)

// learn learns from a success. The estimate is not known before the calls in flight are few beside
// those that have ended: of calls that began together, the short ones end first.
func (u *usualLatency) learn(now time.Duration, latency float64, inFlight int) {
	if u.n == 0 {
		u.median = latency
	}
	gain := min(0.02, float64(now-u.last)/float64(memory))
	if u.n++; u.n < learnUntil {
		gain = max(gain, 1/float64(u.n+1))
	}
	u.last = now
	switch {
	case latency > u.median:
		u.median *= 1 + gain
	case latency < u.median:
		u.median = max(u.median/(1+gain), 1)
	}
	u.known = u.known || u.n >= max(knownAfter, 4*inFlight)
}
