package inflight

import (
	"math"
	"time"
)

// usualLatency estimates the latency while the service is healthy: its mean and variance over about
// a minute. It learns nothing while most calls are slow, so that it does not grow with an overload.
type usualLatency struct {
	n        int     // calls seen, at most knownAfter
	mean     float64 // in ns
	variance float64
	// the mean, or its value before an adaptation mistook congestion for the usual latency
	healthy float64
	late    float64 // share of late failures

	high int // recent calls above half of slow minus those below, from 0 to 2*maxHigh
	last time.Duration
	age  time.Duration
}

const (
	// knownAfter is the number of calls after which the estimate is used.
	knownAfter = 20
	// A slow call takes slowAt times the mean if the latency varies as much as an exponential
	// distribution. Even if the servers behind a queue are 95 % busy, calls rarely take that long.
	slowAt  = 8
	memory  = time.Minute
	maxGain = 0.02
	maxHigh = 4
)

func (u *usualLatency) known() bool { return u.n >= knownAfter }

// slow returns the latency in ns above which a call is slow. It is higher where times vary more, as
// with a mix of fast and slow calls.
func (u *usualLatency) slow() float64 {
	return u.mean + (slowAt-1)*max(u.mean, math.Sqrt(u.variance))
}

// learnFirst learns from one of the first calls.
func (u *usualLatency) learnFirst(now time.Duration, latency float64) {
	u.n++
	d := latency - u.mean
	u.mean += d / float64(u.n)
	u.variance += (d*(latency-u.mean) - u.variance) / float64(u.n)
	u.healthy, u.last = u.mean, now
}

// learn updates the estimate with a call that began while the calls were not bounded.
func (u *usualLatency) learn(now time.Duration, latency float64, late bool) {
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
