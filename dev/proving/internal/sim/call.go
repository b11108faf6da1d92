package sim

import (
	"errors"
	"math"
	"time"
)

// call is one request of a user, with all its attempts. It has one attempt or several.
type call struct {
	client  *client
	process int // counted over all clients
	user    int // counted over the client, or openLoop
	index   int // counted over the user
	random  random
	hurried bool
	leaves  time.Duration // the length of a stream until its client leaves, 0 for no stream
	served  bool          // a stream was being served when its client left
	left    bool          // the client of a stream has left
	host    int           // of the first attempt
	began   time.Duration
	sent    int // attempts that have ended, without those that the guard refused
}

// openLoop is the user of all calls of an open loop.
const openLoop = -1

// streamNumbers is the key of the random numbers of a stream, apart from those of all attempts.
const streamNumbers = 1 << 32

// newCall returns a call whose random numbers depend only on the seed, the client, the user and the
// index.
func newCall(c *client, user, index int) *call {
	k := &call{client: c, user: user, index: index}
	k.random = randomFor(c.run.seed, uint64(c.index), uint64(user), uint64(index))
	k.hurried = k.random.next() < c.HurriedShare
	if c.StreamShare > 0 {
		own := randomFor(uint64(k.random), streamNumbers)
		if own.next() < c.StreamShare {
			k.leaves = max(c.Stream.At(own.next()), 1)
		}
	}
	return k
}

// begin notes that the call is offered.
func (k *call) begin(now time.Duration) {
	k.began = now
	k.client.run.live++
	k.client.run.tally.offered(k)
}

// ending is how an attempt ended for its caller.
type ending struct {
	err        error
	refused    bool // by the guard
	retryAfter time.Duration
}

// attempted ends the call, or schedules its next attempt.
func (k *call) attempted(a *attempt, e ending) {
	r := k.client.run
	now := r.now()
	if e.refused {
		r.tally.refusal(now)
	} else {
		k.sent++
	}
	r.tally.attempted(a, e)
	if e.err != nil && k.mayRetry(a) {
		next := newAttempt(k, a.number+1)
		r.push(event{at: now + k.wait(a, e), kind: begin, attempt: next})
		return
	}
	r.live--
	r.tally.ended(k, e, now)
	p := r.processes[k.process]
	if e.err == nil {
		p.budget = min(p.budget+k.client.Budget, fullBudget)
	}
	if k.user != openLoop {
		k.client.scheduleNext(k.user, k.index+1, now)
	}
}

// mayRetry reports whether another attempt follows, and takes its token.
func (k *call) mayRetry(a *attempt) bool {
	p := k.client.run.processes[k.process]
	switch {
	case a.number >= k.client.Retries || k.left:
		return false
	case k.client.Budget == 0:
		return true
	case p.budget < 1:
		return false
	}
	p.budget--
	return true
}

// wait returns the time until the next attempt.
func (k *call) wait(a *attempt, e ending) time.Duration {
	mean := math.Ldexp(float64(k.client.Backoff), a.number)
	wait := time.Duration(min(2*a.backoff*mean, math.MaxInt64/4))
	if !k.client.ObeysRetryAfter {
		return wait
	}
	asked := e.retryAfter
	var f interface{ RetryAfter() time.Duration }
	if !e.refused && errors.As(e.err, &f) {
		asked = f.RetryAfter()
	}
	return max(wait, min(asked, math.MaxInt64/4))
}
