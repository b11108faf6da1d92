package pipeline

import (
	"slices"
	"sync"
	"time"
)

// call is one caller and what it sends: a command, or a decision about a key.
type call struct {
	key      string
	args     []any
	decision *Decision
	sendText bool // send the text of the decision's script, not its SHA

	due    time.Time
	answer []int64
	err    error
	shared bool   // it was sent as part of one command for several callers
	addr   string // of the server it was last sent to, if known

	wake chan signal // signals a waiting caller; nil if it never waited

	// The lock of the queue protects the rest until there is an answer.
	state      callState
	nextLeader bool // must pass the lane on when it wakes
	next, prev *call
}

// signal is a message to a waiting caller.
type signal uint8

const (
	answered signal = iota
	becomeLeader
)

// callState is the progress of a call.
type callState uint8

const (
	queued    callState = iota
	inBatch             // of another caller
	leading             // a batch, or about to
	abandoned           // left a batch that is being sent
)

// queue is a queue of calls that wait for one of some lanes. While it has callers, all lanes are
// busy.
type queue struct {
	lanes, maxBatch int
	minLeft         time.Duration // a call with less time left is not sent
	// a call with less time left may be due before the leaders ahead of it
	fullTime time.Duration

	mu          sync.Mutex
	busy        int
	first, last *call
}

// join reserves a free lane for c, and otherwise adds c to the queue. It reports whether c has a
// lane.
func (q *queue) join(c *call) (free bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy < q.lanes {
		q.busy++
		c.state = leading
		return true
	}
	c.wake = make(chan signal, 1)
	if c.prev = q.last; c.prev == nil {
		q.first = c
	} else {
		c.prev.next = c
	}
	q.last = c
	return false
}

// leave removes a caller that gives up. It reports whether its command may have been sent.
func (q *queue) leave(c *call) (sent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch c.state {
	case queued:
		q.remove(c)
	case leading:
		q.passLaneLocked()
	case inBatch:
		c.state = abandoned
		if c.nextLeader {
			q.passLaneLocked()
		}
		return true
	case abandoned:
		return true
	}
	return false
}

// takeBatch returns the batch that c leads: c and callers from the queue.
func (q *queue) takeBatch(c *call) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := []*call{c}
	for q.first != nil && len(batch) < q.maxBatch {
		m := q.first
		q.remove(m)
		m.state = inBatch
		batch = append(batch, m)
	}
	return batch
}

// endBatch passes the lane on after a batch has been answered. If the queue is empty, the last
// caller of the batch has to do that when it wakes. By then the other callers may have returned to
// the queue, so that they are batched again.
func (q *queue) endBatch(batch []*call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == nil {
		for _, c := range slices.Backward(batch[1:]) {
			if c.state == inBatch {
				c.nextLeader = true
				return
			}
		}
	}
	q.passLaneLocked()
}

// passLane gives a lane to the first caller in the queue, or frees the lane.
func (q *queue) passLane() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passLaneLocked()
}

func (q *queue) passLaneLocked() {
	if q.first == nil {
		q.busy--
		return
	}
	latest := time.Now().Add(q.minLeft)
	for c := q.first; c != nil; c = q.first {
		q.remove(c)
		if c.due.After(latest) {
			c.state = leading
			c.wake <- becomeLeader
			return
		}
		c.state, c.err = inBatch, ErrUnsent
		c.wake <- answered
	}
	q.busy--
}

// remove removes c from the queue.
func (q *queue) remove(c *call) {
	if c.prev == nil {
		q.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.next, c.prev = nil, nil
}
