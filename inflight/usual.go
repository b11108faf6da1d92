package inflight

import "time"

// usualLatency estimates the median latency of successes while nothing is wrong. The median does
// not care how long the long calls are.
//
// At first it learns from a cohort, the calls that begin one after the other, until nearly all of
// them have ended: of all calls that end, the first ones are short. From then on each success moves
// the estimate by a small share (Robbins and Monro, 1951), at most by a factor of e per minute, so
// that it does not follow an overload.
type usualLatency struct {
	estimate float64
	median   float64 // the estimate in ns, or 0 until it is known
	last     time.Duration

	from, to  time.Duration // the cohort began in this time; to is 0 while it still begins
	first     uint64        // the calls that had started by then
	ended     int           // calls of the cohort
	successes int
}

const (
	cohort = 32
	// The n-th success of the cohort moves the estimate by firstGain/n, so it can become fifty
	// times the first success.
	firstGain = 8
	lastGain  = 0.02
	memory    = time.Minute
)

func (u *usualLatency) known() bool { return u.median > 0 }

// advance closes the cohort when enough calls have begun, and begins another one if its calls do
// not end.
func (u *usualLatency) advance(now time.Duration, started uint64) {
	if u.known() {
		return
	}
	if u.to == 0 && started-u.first >= cohort {
		u.to = now
	}
	if started-u.first >= 16*cohort {
		*u = usualLatency{from: now, first: started}
	}
}

// end counts a call that has ended.
func (u *usualLatency) end(began time.Duration) {
	if u.known() || began < u.from || u.to > 0 && began > u.to {
		return
	}
	u.ended++
	if 8*u.ended >= 7*cohort && 2*u.successes >= cohort {
		u.median = u.estimate
	}
}

// learn learns from a success.
func (u *usualLatency) learn(now time.Duration, latency float64, began time.Duration) {
	gain := min(float64(now-u.last)/float64(memory), lastGain)
	if !u.known() {
		if began < u.from || u.to > 0 && began > u.to {
			return
		}
		if u.successes++; u.successes == 1 {
			u.estimate = latency
		}
		gain = min(firstGain/float64(u.successes), 0.5)
	}
	u.last = now
	switch {
	case latency > u.estimate:
		u.estimate *= 1 + gain
	case latency < u.estimate:
		u.estimate = max(u.estimate/(1+gain), 1)
	}
	if u.known() {
		u.median = u.estimate
	}
}
