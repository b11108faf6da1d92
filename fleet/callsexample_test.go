package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

// newServer starts an empty Redis.
func newServer() string { return redistest.Start(&shared).Addr() }

// The breaker on each node opens on the calls of all nodes.
func ExampleCalls() {
	client := redis.NewClient(&redis.Options{Addr: newServer(), ContextTimeoutEnabled: true})
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	link, err := fleet.Connect(ctx, "redis", client, fleet.LinkConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}

	node := func() (*fleet.Calls, *breaker.Breaker) {
		shared := fleet.NewCalls(link, "payments", fleet.CallsConfig{})
		payments := breaker.New("payments", breaker.Config{
			SharedCounts: shared.Counts,
			// calls before the change do not count
			OnChange: func(breaker.Change) { shared.Forget() },
		})
		shared.Follow(payments)
		return shared, payments
	}
	onA, paymentsA := node()
	onB, paymentsB := node()
	go onA.Run(ctx)
	go onB.Run(ctx)

	works := func(context.Context) error { return nil }
	fails := func(context.Context) error { return errors.New("no answer") }
	for n := range 15 {
		// half of the calls fail, but neither node alone has 20 calls, the default MinCalls
		charge := fails
		if n%2 == 1 {
			charge = works
		}
		_ = paymentsA.Run(ctx, charge)
		_ = paymentsB.Run(ctx, charge)
	}
	fmt.Println(paymentsA.State(), paymentsB.State())
	for onA.Counts().Calls() < 30 || onB.Counts().Calls() < 30 {
		<-time.After(time.Millisecond)
	}
	_ = paymentsA.Run(ctx, fails)
	_ = paymentsB.Run(ctx, fails)
	fmt.Println(paymentsA.State(), paymentsB.State())
	// Output:
	// closed closed
	// open open
}

// Calls follows anything with Totals: a breaker, or a window for calls that no breaker counts.
func ExampleCalls_Follow() {
	client := redis.NewClient(&redis.Options{Addr: newServer(), ContextTimeoutEnabled: true})
	defer client.Close()
	link, err := fleet.Connect(context.Background(), "redis", client, fleet.LinkConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	local := window.NewCalls(window.CallsConfig{})
	shared := fleet.NewCalls(link, "uploads", fleet.CallsConfig{})
	shared.Follow(local)
	local.Record(window.Failure, 0)
	fmt.Println(shared.Counts().Failures)
	// Output: 1
}

func ExampleCallsConfig() {
	fmt.Println(fleet.CallsConfig{Span: time.Minute, Interval: time.Millisecond}.Validate())
	// Output: fleet: Interval is 1ms, must lie between 10ms and Span, 1m0s
}

func ExampleCalls_Err() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer client.Close()
	link, err := fleet.Connect(context.Background(), "redis", client, fleet.LinkConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := fleet.NewCalls(link, "queue", fleet.CallsConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = queue.Run(ctx) // flushes once and returns, because ctx is done
	fmt.Println(errors.Is(queue.Err(), fleet.ErrUnavailable))
	// Output: true
}
