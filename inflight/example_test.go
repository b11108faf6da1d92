package inflight_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/inflight"
)

// A report that asks for another report finds the only slot occupied.
func Example() {
	reports := inflight.New(inflight.Config{Limit: 1})
	ctx := context.Background()
	err := reports.Run(ctx, func(ctx context.Context) error {
		if _, err := reports.TryAcquire(ctx); err != nil {
			fmt.Println("busy")
		}
		return nil
	})
	fmt.Println(err, reports.InFlight())
	// Output:
	// busy
	// <nil> 0
}

func ExampleLimiter() {
	reports := inflight.New(inflight.Config{Limit: 50})
	send := func(ctx context.Context) (err error) {
		slot, err := reports.Acquire(ctx)
		if err != nil {
			return err
		}
		defer func() { slot.Done(ctx, err) }()
		fmt.Println(reports.InFlight(), "in flight")
		return nil
	}
	fmt.Println(send(context.Background()), reports.InFlight())
	// Output:
	// 1 in flight
	// <nil> 0
}

func ExampleSlot() {
	reports := inflight.New(inflight.Config{Limit: 2})
	ctx := context.Background()
	if slot, err := reports.TryAcquire(ctx); err == nil {
		slot.Done(ctx, nil)
		slot.Done(ctx, nil) // does nothing
	}
	fmt.Println(reports.InFlight())
	// Output: 0
}

func ExampleConfig() {
	reports := inflight.New(inflight.Config{Limit: 2})
	for range 3 {
		_, err := reports.TryAcquire(context.Background())
		fmt.Println(err == nil)
	}
	// Output:
	// true
	// true
	// false
}

// In shadow mode, calls beyond the limit are counted and allowed.
func ExampleLimiter_Stats() {
	reports := inflight.New(inflight.Config{Limit: 1, Name: "reports", Shadow: true})
	for range 3 {
		_, _ = reports.TryAcquire(context.Background())
	}
	stats := reports.Stats()
	fmt.Println(stats.Allowed, stats.Shadowed, reports.InFlight())
	// Output: 1 2 1
}

// Nothing may wait here, so the second call would end at the deadline.
func ExampleFullError() {
	reports := inflight.New(inflight.Config{Limit: 1, Name: "reports"})
	_, _ = reports.TryAcquire(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 1)
	defer cancel()
	<-ctx.Done()
	_, err := reports.Acquire(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))

	err = &inflight.FullError{Name: "reports", Limit: 1}
	fmt.Println(errors.Is(err, inflight.ErrFull), err)
	// Output:
	// true
	// true inflight limiter "reports" is full (limit 1)
}
