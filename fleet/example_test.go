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
	"github.com/weir-go/weir/stat"
)

// exampleLink is a link to a Redis that runs for the examples.
func exampleLink() *fleet.Link {
	client := redis.NewClient(&redis.Options{Addr: server().Addr(), ContextTimeoutEnabled: true})
	shared.Cleanup(func() { _ = client.Close() })
	link, err := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: time.Second, Prefix: newKey() + ":"})
	if err != nil {
		panic(err)
	}
	return link
}

func ExampleConnect() {
	client := redis.NewClient(&redis.Options{Addr: server().Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()

	link, err := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: 50 * time.Millisecond})
	if err != nil {
		fmt.Println(err) // too old, access denied, a bad certificate; but not: away
		return
	}
	fmt.Println(link.Name(), link.Breaker().State())
	// Output: limits closed
}

func ExampleTokenBucket() {
	link := exampleLink()
	users := fleet.NewTokenBucket(link, "users", fleet.Bucket{Rate: limiter.PerMinute(1), Burst: 2}, fleet.Config{Away: fleet.Closed})

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

func ExampleFixedWindow() {
	link := exampleLink()
	daily := fleet.NewFixedWindow(link, "daily", fleet.Fixed{Limit: 1000, Span: 24 * time.Hour}, fleet.Config{Away: fleet.Open})

	r, err := daily.Take(context.Background(), "tenant:7", 400)
	fmt.Println(r.OK, r.Remaining, err)
	r, err = daily.Take(context.Background(), "tenant:7", 601)
	fmt.Println(r.OK, r.Remaining, err)
	// Output:
	// true 600 <nil>
	// false 600 <nil>
}

func ExampleSlidingWindow() {
	link := exampleLink()
	logins := fleet.NewSlidingWindow(link, "logins", fleet.Sliding{Limit: 3, Span: time.Minute}, fleet.Config{Away: fleet.Closed})

	for range 4 {
		r, _ := logins.Take(context.Background(), "203.0.113.9", 1)
		fmt.Print(r.OK, " ")
	}
	// Output: true true true false
}

func ExampleSlidingLog() {
	link := exampleLink()
	ctx := context.Background()
	partner := fleet.NewSlidingLog(link, "partner", fleet.Log{Limit: 10, Span: time.Minute}, fleet.Config{Away: fleet.Error})

	_, _ = partner.Take(ctx, "acme", 3)
	_ = partner.SetRate(ctx, "acme", 20, time.Minute) // for all nodes
	left, _ := partner.Available(ctx, "acme")
	fmt.Println(left)
	// Output: 17
}

func ExampleThrottle() {
	link := exampleLink()
	// CL.THROTTLE reply:user:42 15 30 60
	replies := fleet.NewThrottle(link, "reply", fleet.Cell{MaxBurst: 15, Count: 30, Period: time.Minute}, fleet.Config{Away: fleet.Open})

	reply, err := replies.Ask(context.Background(), "user:42", 1)
	fmt.Println(reply.Integers(), err)
	// Output: [0 16 15 -1 2] <nil>
}

func ExampleAll() {
	link := exampleLink()
	api := fleet.NewAll(link, "api", fleet.Config{Away: fleet.Local, Share: 0.25},
		fleet.Bucket{Rate: limiter.PerSecond(10)},
		fleet.Sliding{Limit: 100, Span: time.Hour},
	)
	r, err := api.Take(context.Background(), "user:42", 5)
	fmt.Println(r.OK, r.Limit, r.Remaining, err)

	each, _ := api.TakeEach(context.Background(), "user:42", 1)
	fmt.Println(each[1].Remaining)
	// Output:
	// true 10 5 <nil>
	// 94
}

func ExampleKeyed() {
	link := exampleLink()
	outbound := fleet.NewTokenBucket(link, "outbound", fleet.Bucket{Rate: limiter.PerSecond(200)}, fleet.Config{Away: fleet.Open})

	// All processes together make 200 calls a second; each has a breaker of its own.
	payments := weir.Join("payments", breaker.New("payments", breaker.Config{}), outbound.Get("payments"))
	err := payments.Run(context.Background(), func(context.Context) error { return nil })
	fmt.Println(err)
	// Output: <nil>
}

func ExampleStoreError() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	link, _ := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: 5 * time.Second})
	users := fleet.NewTokenBucket(link, "users", fleet.Bucket{Rate: limiter.PerSecond(100)}, fleet.Config{Away: fleet.Error})

	_, err := users.Take(context.Background(), "user:42", 1)
	fmt.Println(err)
	fmt.Println(errors.Is(err, fleet.ErrAway))
	// Output:
	// fleet: redis limits: no connection
	// true
}

func ExampleAway() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	link, _ := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{})
	users := fleet.NewTokenBucket(link, "users",
		fleet.Bucket{Rate: limiter.PerHour(1), Burst: 12}, fleet.Config{Away: fleet.Local, Share: 1.0 / 6})

	for range 3 {
		r, _ := users.Take(context.Background(), "user:42", 1)
		fmt.Println(r.OK, r.From)
	}
	// Output:
	// true away
	// true away
	// false away
}

func ExampleLink() {
	link := exampleLink()
	// All limiters of a link go by one breaker, whose figures any exporter shows.
	figures := 0
	link.Observe(func(*stat.Series, float64) { figures++ })
	fmt.Println(link.Breaker().IsOpen(), figures > 0)
	// Output: false true
}

func ExampleResult() {
	link := exampleLink()
	users := fleet.NewTokenBucket(link, "results", fleet.Bucket{Rate: limiter.PerMinute(1), Burst: 3}, fleet.Config{Away: fleet.Open})

	r, err := users.Take(context.Background(), "user:42", 4)
	fmt.Println(r.OK, r.Remaining, r.RetryAfter == limiter.Never, r.From, err)
	// Output: false 3 true server <nil>
}

func ExampleReply() {
	reply := fleet.Reply{Limited: true, Limit: 16, Remaining: 0, RetryAfter: 2, ResetAfter: 32}
	fmt.Println(reply.Integers())
	// Output: [1 16 0 2 32]
}

func ExampleLimit() {
	for _, limit := range []fleet.Limit{
		fleet.Bucket{Rate: limiter.PerSecond(10)},
		fleet.Fixed{Limit: 100, Span: time.Minute},
		fleet.Sliding{Limit: 0, Span: time.Hour},
	} {
		fmt.Println(limit.Validate())
	}
	// Output:
	// <nil>
	// <nil>
	// fleet: Limit is 0, must lie between 1 and 2147483647
}

func ExampleBucket() {
	fmt.Println(fleet.Bucket{Rate: limiter.Unlimited()}.Validate())
	// Output: fleet: Rate is unlimited, must be finite
}

func ExampleFixed() {
	fmt.Println(fleet.Fixed{Limit: 100, Span: time.Minute}.Validate())
	// Output: <nil>
}

func ExampleSliding() {
	fmt.Println(fleet.Sliding{Limit: 100, Span: time.Minute, Buckets: 60}.Validate()) // permits come back up to a second late
	// Output: <nil>
}

func ExampleLog() {
	// Each client has 100 a minute of its own, as with Redisson's PER_CLIENT.
	fmt.Println(fleet.Log{Limit: 100, Span: time.Minute, PerClient: true, Client: "worker-1"}.Validate())
	// Output: <nil>
}

func ExampleCell() {
	fmt.Println(fleet.Cell{MaxBurst: 15, Count: 30, Period: 90 * time.Millisecond}.Validate())
	// Output: fleet: Period is 90ms, must be whole seconds between 1s and 87600h0m0s
}

// Leases and what is remembered of refusals are bounded.
func ExampleConfig() {
	fmt.Println(fleet.Config{Away: fleet.Local, Share: 0.25, MaxLease: 100}.Validate())
	fmt.Println(fleet.Config{Away: fleet.Local, MaxLease: 1}.Validate())
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

// A key that Redis has refused is refused here, until the time that Redis gave.
func ExampleFrom() {
	link := exampleLink()
	users := fleet.NewTokenBucket(link, "from", fleet.Bucket{Rate: limiter.PerMinute(1), Burst: 1}, fleet.Config{Away: fleet.Closed})
	for range 3 {
		r, _ := users.Take(context.Background(), "user:42", 1)
		fmt.Println(r.OK, r.From)
	}
	// Output:
	// true server
	// false server
	// false deny cache
}

func ExampleFault() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, DialerRetries: 1})
	defer func() { _ = client.Close() }()
	link, _ := fleet.Connect(context.Background(), "limits", client, fleet.LinkConfig{Timeout: 5 * time.Second})
	users := fleet.NewTokenBucket(link, "users", fleet.Bucket{Rate: limiter.PerSecond(100)}, fleet.Config{Away: fleet.Error})

	_, err := users.Take(context.Background(), "user:42", 1)
	if store, ok := errors.AsType[*fleet.StoreError](err); ok {
		fmt.Println(store.Fault)
	}
	// Output: connection
}
