package sim

import (
	"math"
	"slices"
	"time"
)

// client makes the calls of one Client.
type client struct {
	Client
	run   *run
	index int
	first int             // its first process
	turns []time.Duration // when its rate changes, in order, and the end of time
}

// process holds the state that the calls of one process share.
type process struct {
	guard    Guard
	openings int     // before anything is counted
	budget   float64 // tokens for retries
}

// fullBudget is the capacity of the bucket of Client.Budget. It is full at first.
const fullBudget = 10

func newClient(r *run, index int, c Client) *client {
	c.Processes = max(c.Processes, 1)
	if c.To == 0 || c.To > r.world.For {
		c.To = r.world.For
	}
	n := &client{Client: c, run: r, index: index, first: len(r.processes)}
	for _, s := range c.Surge {
		n.turns = append(n.turns, s.From, s.To)
	}
	slices.Sort(n.turns)
	n.turns = append(n.turns, math.MaxInt64)
	return n
}

// start schedules the first calls.
func (c *client) start() {
	if c.Rate > 0 {
		c.run.coming++
		c.arriveAfter(0, c.From)
		return
	}
	for user := range c.Processes * c.Users {
		c.run.coming++
		c.scheduleNext(user, 0, c.From)
	}
}

// arriveAfter schedules a call of an open loop, after the previous one at t. The integral of the
// rate between two calls is drawn, so that a surge moves calls in time, but does not change the
// calls.
func (c *client) arriveAfter(index int, t time.Duration) {
	k := newCall(c, openLoop, index)
	due := -math.Log1p(-k.random.next())
	k.process = c.first + int(k.random.next()*float64(c.Processes))
	for _, turn := range c.turns {
		if turn <= t {
			continue
		}
		rate := c.rateAt(t)
		if at := float64(t) + due/rate*float64(time.Second); at < float64(turn) {
			c.scheduleCall(event{at: time.Duration(at), kind: arrive, index: c.index, attempt: newAttempt(k, 0)})
			return
		}
		due -= rate * (turn - t).Seconds()
		t = turn
	}
	c.run.coming-- // the rate is 0 from now on
}

func (c *client) rateAt(t time.Duration) float64 {
	rate := c.Rate
	for _, s := range c.Surge {
		if s.holds(t) {
			rate *= s.Times
		}
	}
	return rate
}

// arrive begins a call of an open loop. A suspended process takes no call from its users.
func (c *client) arrive(first *attempt) {
	now := c.run.now()
	if !c.Suspended.holds(now) {
		first.begin()
	}
	c.arriveAfter(first.call.index+1, now)
}

// scheduleNext schedules the next call of a user of a closed loop.
func (c *client) scheduleNext(user, index int, now time.Duration) {
	k := newCall(c, user, index)
	k.process = c.first + user%c.Processes
	at := now + Exponential(c.Think).At(k.random.next())
	c.scheduleCall(event{at: at, kind: begin, attempt: newAttempt(k, 0)})
}

// scheduleCall schedules the next call, if it begins before the client ends.
func (c *client) scheduleCall(e event) {
	if e.at >= c.To {
		c.run.coming--
		return
	}
	c.run.push(e)
}
