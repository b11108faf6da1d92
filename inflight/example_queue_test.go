package inflight_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weir-go/weir/inflight"
)

// A full queue keeps the callers that matter most: a payment takes the place of a report.
func ExampleCaller() {
	l := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 1, Name: "database"})
	slot, _ := l.TryAcquire(context.Background())
	ask := func(c inflight.Caller) <-chan error {
		answer := make(chan error, 1)
		go func() {
			slot, err := l.Acquire(inflight.WithCaller(context.Background(), c))
			answer <- err
			slot.Done(context.Background(), err)
		}()
		for l.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		return answer
	}
	report := ask(inflight.Caller{Priority: inflight.Background})
	payment := ask(inflight.Caller{Priority: inflight.Critical})
	fmt.Println("report refused:", errors.Is(<-report, inflight.ErrFull))
	slot.Done(context.Background(), nil)
	fmt.Println("payment:", <-payment)
	// Output:
	// report refused: true
	// payment: <nil>
}

// In an overload, callers wait for at most 20ms. The large customer gets three times as many slots
// as each of the others.
func ExampleQueue() {
	l := inflight.New(inflight.Config{Limit: 200, MaxWaiters: 1000, Queue: inflight.Queue{
		Target: 20 * time.Millisecond,
		TenantWeight: func(tenant string) float64 {
			if tenant == "large" {
				return 3
			}
			return 1
		},
	}})
	slot, err := l.Acquire(inflight.WithCaller(context.Background(), inflight.Caller{Tenant: "large"}))
	fmt.Println(err, l.InFlight(), l.Queue().Target)
	slot.Done(context.Background(), nil)
	// Output: <nil> 1 20ms
}

func ExamplePriority() {
	var p inflight.Priority
	err := p.UnmarshalText([]byte("background"))
	fmt.Println(p, p < inflight.Normal, err)
	// Output: background true <nil>
}
