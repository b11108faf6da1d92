package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// exampleLink returns a link to a Redis that runs for the examples.
func exampleLink() *fleet.Link {
	client := redis.NewClient(&redis.Options{Addr: sharedServer().Addr(), ContextTimeoutEnabled: true})
	shared.Cleanup(func() { _ = client.Close() })
	link, err := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: time.Second, Prefix: newKey() + ":"})
	if err != nil {
		panic(err)
	}
	return link
}

func ExampleConnect() {
	client := redis.NewClient(&redis.Options{Addr: sharedServer().Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()

	link, err := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: 50 * time.Millisecond})
	if err != nil {
		// too old, access denied, or a bad certificate; if Redis is unavailable, err is nil
		fmt.Println(err)
		return
	}
	for addr, b := range link.Breakers() {
		fmt.Printf("%q %s\n", addr, b.State())
	}
	// Output: "" closed
}

func ExampleNewLimiter() {
	link := exampleLink()
	users := fleet.NewLimiter("users", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerMinute(1), Burst: 2}},
		OnOutage: fleet.FailClosed,
	})

	for range 3 {
		r, err := users.Take(context.Background(), "user:42", 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.OK, r.Remaining, r.RetryAfter.Round(time.Minute), r.From)
	}
	// Output:
	// true 1 0s server
	// true 0 0s server
	// false 0 1m0s server
}

// Several limits per key: a request takes from all of them or from none.
func ExampleLimits_several() {
	link := exampleLink()
	api := fleet.NewLimiter("api", fleet.Config{
		Link: link,
		Limits: []fleet.Limit{
			fleet.TokenBucket{Rate: limiter.PerSecond(10)},
			fleet.SlidingWindow{Limit: 100, Window: time.Hour},
		},
		OnOutage: fleet.FailLocal, Share: 0.25,
	})
	r, err := api.Take(context.Background(), "user:42", 5)
	fmt.Println(r.OK, r.Limit, r.Remaining, err)
	// Output: true 10 5 <nil>
}

func ExampleReservation() {
	link := exampleLink()
	answers := fleet.NewLimiter("answers", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.FixedWindow{Limit: 1000, Window: time.Hour}}, OnOutage: fleet.FailLocal, Share: 0.1,
	})

	ctx := context.Background()
	r, err := answers.Reserve(ctx, "user:42", 300) // an estimate
	if err != nil || !r.OK {
		fmt.Println(r, err)
		return
	}
	if err := r.Refund(ctx, 100); err != nil { // it cost 200
		fmt.Println(err)
	}
	left, err := answers.Take(ctx, "user:42", 0)
	fmt.Println(left.Remaining, err)
	// Output: 800 <nil>
}

// What an answer costs is known when it is there. A second Settle would change nothing.
func ExampleReservation_Settle() {
	link := exampleLink()
	tokens := fleet.NewLimiter("tokens", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerMinute(1000), Burst: 1000}}, OnOutage: fleet.FailClosed,
	})

	ctx := context.Background()
	r, err := tokens.Reserve(ctx, "user:42", 300) // an estimate
	if err != nil || !r.OK {
		fmt.Println(r, err)
		return
	}
	for range 3 { // it cost 3000
		if err = r.Settle(ctx, 3000); err == nil {
			break
		}
	}
	next, err := tokens.Take(ctx, "user:42", 1000)
	fmt.Println(next.OK, next.RetryAfter.Round(time.Minute), err)
	// Output: false 3m0s <nil>
}

func ExampleLimiter_Get() {
	link := exampleLink()
	//readme:outbound
	outbound := fleet.NewLimiter("outbound", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(200)}},
		OnOutage: fleet.FailOpen,
	})

	// All processes together make 200 calls per second; each has a breaker of its own.
	payments := weir.Join("payments", weir.Parts{Breaker: breaker.New("payments", breaker.Config{}), Remote: outbound.Get("payments")})
	//readme:end
	err := payments.Run(context.Background(), func(context.Context) error { return nil })
	fmt.Println(err)
	// Output: <nil>
}

func ExampleStoreError() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	link, _ := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: 5 * time.Second})
	users := fleet.NewLimiter("users", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(100)}},
		OnOutage: fleet.FailError,
	})

	_, err := users.Take(context.Background(), "user:42", 1)
	fmt.Println(err)
	fmt.Println(errors.Is(err, fleet.ErrUnavailable))
	// Output:
	// fleet: redis limits: no connection
	// true
}

func ExampleOnOutage() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	link, _ := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{})
	users := fleet.NewLimiter("users", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 12}},
		OnOutage: fleet.FailLocal, Share: 1.0 / 6,
	})

	for range 3 {
		r, _ := users.Take(context.Background(), "user:42", 1)
		fmt.Println(r.OK, r.From)
	}
	// Output:
	// true outage
	// true outage
	// false outage
}

func ExampleLink() {
	link := exampleLink()
	// All limiters of a link share one breaker. Observe yields its metrics to an exporter.
	values := 0
	for range link.Observe {
		values++
	}
	for _, b := range link.Breakers() {
		fmt.Println(b.Tripped(), values > 0)
	}
	// Output: false true
}

func ExampleResult() {
	link := exampleLink()
	users := fleet.NewLimiter("results", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerMinute(1), Burst: 3}},
		OnOutage: fleet.FailOpen,
	})

	r, err := users.Take(context.Background(), "user:42", 4)
	fmt.Println(r.OK, r.Remaining, r.RetryAfter == limiter.Never, r.From, err)
	// Output: false 3 true server <nil>
}

// Leases and remembered refusals are bounded.
func ExampleConfig() {
	c := fleet.Config{Link: exampleLink(), Limits: []fleet.Limit{fleet.FixedWindow{Limit: 100, Window: time.Minute}}}
	c.OnOutage, c.Share, c.MaxLease = fleet.FailLocal, 0.25, 100
	fmt.Println(c.Validate())
	c.Share, c.MaxLease = 0, 1
	fmt.Println(c.Validate())
	// Output:
	// <nil>
	// fleet: Share is 0, must be above 0 and at most 1
	// fleet: MaxLease is 1, must lie between 2 and 1000000 (or be 0 for no leases)
}

func ExampleLinkConfig() {
	fmt.Println(fleet.LinkConfig{Timeout: 20 * time.Millisecond, Prefix: "shop:"}.Validate())
	fmt.Println(fleet.LinkConfig{Timeout: time.Hour, Prefix: "{shop}"}.Validate())
	// Output:
	// <nil>
	// fleet: Timeout is 1h0m0s, must lie between 1ms and 1m0s (or be 0 for the default)
	// fleet: Prefix is "{shop}", must have no braces
}

// If Redis has refused a request, the same request is refused without asking Redis until RetryAfter
// has passed.
func ExampleResult_from() {
	link := exampleLink()
	users := fleet.NewLimiter("from", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerMinute(1), Burst: 1}},
		OnOutage: fleet.FailClosed,
	})
	for range 3 {
		r, _ := users.Take(context.Background(), "user:42", 1)
		fmt.Println(r.OK, r.From)
	}
	// Output:
	// true server
	// false server
	// false deny cache
}

func ExampleStoreError_fault() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	link, _ := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: 5 * time.Second})
	users := fleet.NewLimiter("users", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(100)}},
		OnOutage: fleet.FailError,
	})

	_, err := users.Take(context.Background(), "user:42", 1)
	if store, ok := errors.AsType[*fleet.StoreError](err); ok {
		fmt.Println(store.Fault)
	}
	// Output: connection
}
