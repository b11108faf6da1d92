package pipeline

import (
	"slices"
	"sync"
	"time"
)

// call is a caller, and what it has to send: a command, or a decision about a key.
type call struct {
	key      string
	args     []any
	decision *Decision
	sendText bool // the decision's text is sent

	due    time.Time // when its time is up
	shared bool      // it was sent as a part of one command for several callers

	wake   chan signal // what to do; nil as long as it never had to wait
	answer []int64
	err    error
	addr   string // of the server that was asked last, where that is known

	state      callState // this and what follows: under the lock of the line, until there is an answer
	nextLeader bool      // is to pass the lane on
	next, prev *call
}

// turn is what a caller who waits is told.
type signal uint8

const (
	answered     signal = iota // there is an answer
	becomeLeader               // it has a lane
)

// place is where a call is.
type callState uint8

const (
	queued  callState = iota
	inBatch           // in the batch of another
	leading
	abandoned // has left a batch that is under way
)

// line is a queue before some lanes. While anybody is in the queue all lanes are busy.
type queue struct {
	lanes, maxBatch int
	minLeft         time.Duration // who has less time left is not sent
	fullTime        time.Duration // who has less time left may have come before those who lead

	mu          sync.Mutex
	busy        int
	first, last *call
}

// join takes a free lane, or else a place in the queue; it reports which.
func (l *queue) join(c *call) (free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy < l.lanes {
		l.busy++
		c.state = leading
		return true
	}
	c.wake = make(chan signal, 1)
	if c.prev = l.last; c.prev == nil {
		l.first = c
	} else {
		c.prev.next = c
	}
	l.last = c
	return false
}

// leave takes c out of the queue, and reports whether it is under way already, so that nothing can be done.
func (l *queue) leave(c *call) (sent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c.state {
	case queued:
		l.remove(c)
	case leading:
		l.passLaneLocked()
	case inBatch:
		c.state = abandoned
		if c.nextLeader {
			l.passLaneLocked()
		}
		return true
	case abandoned:
		return true
	}
	return false
}

// take returns the batch that c leads: itself, and those in the queue.
func (l *queue) takeBatch(c *call) []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := []*call{c}
	for l.first != nil && len(batch) < l.maxBatch {
		m := l.first
		l.remove(m)
		m.state = inBatch
		batch = append(batch, m)
	}
	return batch
}

// passAfter passes the lane on when a batch has its answers. Where nobody is in the queue its heir is to do that, the last of the
// batch, when it runs: those before it may have come back by then, and go together again.
func (l *queue) endBatch(batch []*call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		for _, c := range slices.Backward(batch[1:]) {
			if c.state == inBatch {
				c.nextLeader = true
				return
			}
		}
	}
	l.passLaneLocked()
}

// pass gives a lane to who has waited longest, or frees it.
func (l *queue) passLane() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passLaneLocked()
}

func (l *queue) passLaneLocked() {
	if l.first == nil {
		l.busy--
		return
	}
	latest := time.Now().Add(l.minLeft)
	for c := l.first; c != nil; c = l.first {
		l.remove(c)
		if c.due.After(latest) {
			c.state = leading
			c.wake <- becomeLeader
			return
		}
		c.state, c.err = inBatch, ErrUnsent
		c.wake <- answered
	}
	l.busy--
}

// remove takes c out of the queue.
func (l *queue) remove(c *call) {
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.next, c.prev = nil, nil
}
