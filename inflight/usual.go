package inflight

import (
	"slices"
	"time"
)

// usualLatency estimates the median latency of successes while nothing is wrong. The median does
// not care how long the long calls are.
//
// At first it is that of a cohort, the calls that begin one after the other, once nearly all of
// them have ended: of all calls that end, the first ones are short. The others and those that have
// failed count as longer. From then on each success moves the median by a small share (Robbins and
// Monro, 1951), at most by a factor of e per minute, so that it does not follow an overload.
type usualLatency struct {
	median float64 // in ns, or 0 until it is known
	last   time.Duration

	from, to  time.Duration // the cohort began in this time; to is 0 while it still begins
	first     uint64        // the calls that had started by then
	ended     int           // calls of the cohort
	successes []float64     // their latencies
}

const (
	cohort = 32
	// gain is the largest share by which a success moves the median.
	gain   = 0.02
	memory = time.Minute
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

// isInCohort reports whether a call that began at a time belongs to the cohort.
func (u *usualLatency) isInCohort(began time.Duration) bool {
	return !u.known() && began >= u.from && (u.to == 0 || began <= u.to)
}

// end counts a call that has ended.
func (u *usualLatency) end(began time.Duration) {
	if !u.isInCohort(began) {
		return
	}
	u.ended++
	if n := len(u.successes); 8*u.ended >= 7*cohort && 2*n >= cohort {
		slices.Sort(u.successes)
		u.median, u.successes = u.successes[min(cohort/2, n-1)], nil
	}
}

// learn learns from a success.
func (u *usualLatency) learn(now time.Duration, latency float64, began time.Duration) {
	by := min(float64(now-u.last)/float64(memory), gain)
	u.last = now
	switch {
	case u.isInCohort(began):
		u.successes = append(u.successes, latency)
	case !u.known():
	case latency > u.median:
		u.median *= 1 + by
	case latency < u.median:
		u.median = max(u.median/(1+by), 1)
	}
}
