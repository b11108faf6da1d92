package inflight

import (
	"math"
	"time"
)

// usual is what the latency of a good day is like. It follows the mean and the variance over about
// a minute, and learns nothing while most calls are slow, so that it does not grow with an
// overload.
type usual struct {
	n        int     // calls seen, at most known
	mean     float64 // in ns
	variance float64
	healthy  float64 // the mean, or what it was before an adaptation took congestion for the new usual
	late     float64 // share of late failures

	high int // how many more calls of late were above half of slow than below, from 0 to 2*maxHigh
	last time.Duration
	age  time.Duration
}

const (
	// knownAfter is the number of calls before which nothing is known.
	knownAfter = 20
	// slowAt is how many times the mean a slow call takes if the latency varies as much as an
	// exponential distribution. A queue that is used at 95 % is rarely that long.
	slowAt  = 8
	memory  = time.Minute
	maxGain = 0.02
	maxHigh = 4
)

func (u *usual) known() bool { return u.n >= knownAfter }

// slow returns the latency in ns above which a call is slow. Where times vary more, as with a mix
// of fast and slow calls, more of it is usual.
func (u *usual) slow() float64 {
	return u.mean + (slowAt-1)*max(u.mean, math.Sqrt(u.variance))
}

// first learns from one of the first calls.
func (u *usual) first(now time.Duration, latency float64) {
	u.n++
	d := latency - u.mean
	u.mean += d / float64(u.n)
	u.variance += (d*(latency-u.mean) - u.variance) / float64(u.n)
	u.healthy, u.last = u.mean, now
}

// learn learns from a call that began while nothing was wrong.
func (u *usual) learn(now time.Duration, latency float64, late bool) {
	elapsed := now - u.last
	u.last = now
	if latency > u.slow()/2 {
		u.high = min(u.high+1, 2*maxHigh)
	} else {
		u.high = max(u.high-1, 0)
	}
	if u.high > maxHigh {
		return
	}
	u.age = min(u.age+elapsed, memory)
	gain := min(maxGain, float64(elapsed)/float64(u.age+1))
	if late {
		u.late += gain * (1 - u.late)
		return
	}
	u.late -= gain * u.late
	d := min(latency, u.slow()) - u.mean
	u.mean += gain * d
	u.variance += gain * (d*d - u.variance)
	u.healthy += gain * (u.mean - u.healthy)
}
