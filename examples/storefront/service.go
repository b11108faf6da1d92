package main

import (
	"context"
	"errors"
	"time"
)

// outage is the time in which a payment service hangs.
type outage struct{ from, to time.Time }

// left returns the time until the outage ends, or 0 if there is no outage at t.
func (o outage) left(t time.Time) time.Duration {
	if t.Before(o.from) || !t.Before(o.to) {
		return 0
	}
	return o.to.Sub(t)
}

const (
	workers    = 14
	answerTime = 40 * time.Millisecond
	queueSize  = 1000
)

// service is a payment service. Its workers answer 350 calls per second. During the outage they
// hang, as if their database were locked, and calls wait in the queue.
//
// A worker does not notice that the caller of a call has gone, as in most servers: it reads the
// call from a buffer, does the work, and only then fails to send the answer. After an outage such
// a service first works for callers that have gone. A service that drops their calls is better for
// the shop without weir.
type service struct {
	outage outage
	drops  bool // calls whose callers have gone
	queue  chan payment
}

// payment is a call that waits for its answer.
type payment struct {
	caller   context.Context
	answered chan struct{}
}

// newService starts the workers. They end when the queue is closed.
func newService(o outage, drops bool) *service {
	s := &service{outage: o, drops: drops, queue: make(chan payment, queueSize)}
	for range workers {
		go s.work()
	}
	return s
}

func (s *service) work() {
	for p := range s.queue {
		time.Sleep(s.outage.left(time.Now()))
		if s.drops && p.caller.Err() != nil {
			continue
		}
		time.Sleep(answerTime)
		close(p.answered)
	}
}

var errBusy = errors.New("payment service: too many calls")

// charge makes one payment. It returns when the payment is made or ctx is done.
func (s *service) charge(ctx context.Context) error {
	p := payment{caller: ctx, answered: make(chan struct{})}
	select {
	case s.queue <- p:
	default:
		return errBusy
	}
	select {
	case <-p.answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
