package main

import (
	"context"
	"sync"
	"time"
)

const (
	timeout     = time.Second
	connections = 50
	wellRow     = 200 // payments in a row, those of a second
)

// shop sells. Each customer is one payment. The client is a usual one: it gives up a call after a
// timeout, keeps a bounded number of connections, and does not retry, which would make an outage
// worse. A call without a connection waits for one within its timeout, as in net/http.
type shop struct {
	service *service
	slots   chan struct{} // one per connection
	guard   func(ctx context.Context, call func(context.Context) error) error

	mu      sync.Mutex
	figures figures
}

// figures are what one sees of a shop.
type figures struct {
	waiting     int // customers, now
	mostWaiting int // customers
	failed      int // payments, of which refused ones are a part
	sent        int // calls, to the service while it hangs

	paidInARow int
	paidSince  time.Time // when the first of them was paid
}

// isWell reports whether no payment has failed for a while.
func (f figures) isWell() bool { return f.paidInARow >= wellRow }

// noGuard makes each call.
func noGuard(ctx context.Context, call func(context.Context) error) error { return call(ctx) }

// newShop returns a shop whose calls go through the guard.
func newShop(s *service, guard func(context.Context, func(context.Context) error) error) *shop {
	return &shop{service: s, slots: make(chan struct{}, connections), guard: guard}
}

// serve serves one customer.
func (s *shop) serve(ctx context.Context) {
	s.enter()
	err := s.guard(ctx, s.charge)
	s.leave(err, time.Now())
}

// charge calls the payment service.
func (s *shop) charge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.slots }()
	s.send(time.Now())
	return s.service.charge(ctx)
}

func (s *shop) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.waiting++
	s.figures.mostWaiting = max(s.figures.mostWaiting, s.figures.waiting)
}

func (s *shop) send(now time.Time) {
	if s.service.outage.left(now) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.sent++
}

func (s *shop) leave(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.figures
	f.waiting--
	if err != nil {
		f.failed++
		f.paidInARow = 0
		return
	}
	if f.paidInARow == 0 {
		f.paidSince = now
	}
	f.paidInARow++
}

// read returns the figures now.
func (s *shop) read() figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures
}
