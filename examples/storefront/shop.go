package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// shop sells. Each order of a customer is one call to the payment service.
type shop struct {
	day       schedule
	client    *paymentClient
	customers *window.Counter // in the last second
	sales     sales
}

func newShop(day schedule, client *paymentClient) *shop {
	return &shop{day: day, client: client, customers: window.NewCounter(lastSecond())}
}

// open sells until the context is done, and returns when the last customer has been served. It
// aborts no call, so each call has an outcome.
func (s *shop) open(ctx context.Context, start time.Time) {
	arriving := arrivals{day: s.day}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var orders sync.WaitGroup
	defer orders.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for range arriving.next(time.Since(start)) {
			orders.Go(func() { s.sell(context.WithoutCancel(ctx)) })
		}
	}
}

func (s *shop) sell(ctx context.Context) {
	s.customers.Add(1)
	_, err := s.client.charge(ctx)
	s.sales.count(err)
}

// sales counts the orders by outcome.
type sales struct {
	succeeded, failed, refusedOpen, refusedLimited atomic.Int64
}

func (s *sales) count(err error) {
	switch {
	case err == nil:
		s.succeeded.Add(1)
	case errors.Is(err, breaker.ErrOpen):
		s.refusedOpen.Add(1)
	case errors.Is(err, limiter.ErrLimited):
		s.refusedLimited.Add(1)
	default:
		s.failed.Add(1)
	}
}
