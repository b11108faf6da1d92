package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func Example() {
	payments := weir.New("payments", weir.Config{Rate: limiter.PerMinute(2), Burst: 2})
	for range 3 {
		receipt, err := weir.Do(context.Background(), payments, func(context.Context) (string, error) {
			return "paid", nil // a call to the payment service
		})
		fmt.Printf("%q limited: %v\n", receipt, errors.Is(err, limiter.ErrLimited))
	}
	// Output:
	// "paid" limited: false
	// "paid" limited: false
	// "" limited: true
}

func ExampleGate() {
	payments := weir.New("payments", weir.Config{Breaker: breaker.Config{MinCalls: 2, Cooldown: time.Minute}})
	down := func(context.Context) error { return errors.New("connection refused") }
	for range 3 {
		err := payments.Run(context.Background(), down)
		fmt.Println(errors.Is(err, breaker.ErrOpen), weir.RetryAfter(err).Round(time.Minute))
	}
	// Output:
	// false 0s
	// false 0s
	// true 1m0s
}

// A call that is not a function call: it ends in another function, or is a stream. Until the permit
// is used, the call takes one of the two slots.
func ExamplePermit() {
	uploads := weir.New("uploads", weir.Config{MaxConcurrent: 2})
	upload := func(ctx context.Context) error {
		permit, err := uploads.Allow(ctx)
		if err != nil {
			return err
		}
		defer permit.Record(ctx, nil, breaker.Failure) // counts only if nothing else was recorded
		err = nil                                      // send the file here
		permit.Done(ctx, err)
		return err
	}
	fmt.Println(upload(context.Background()), uploads.Totals().Successes, uploads.Totals().Failures)
	// Output: <nil> 1 0
}

// A gate with a breaker, a limiter and a fallback. An error of the service is returned as it is.
func ExampleDoOr() {
	prices := weir.New("prices", weir.Config{
		Rate: limiter.Per(4, time.Hour), Burst: 4,
		Breaker: breaker.Config{ConsecutiveFailures: 2},
	})
	answers := []error{nil, errors.New("connection reset"), errors.New("connection reset")}
	fetch := func(context.Context) (int, error) {
		err := answers[0]
		answers = answers[1:]
		if err != nil {
			return 0, err
		}
		return 1999, nil
	}
	lastKnown := func(_ context.Context, refusal error) (int, error) {
		fmt.Print("open: ", errors.Is(refusal, breaker.ErrOpen), ", limited: ", errors.Is(refusal, limiter.ErrLimited), ", so ")
		return 1899, nil
	}
	for range 4 {
		price, err := weir.DoOr(context.Background(), prices, fetch, lastKnown)
		fmt.Println(price, err)
	}
	// Output:
	// 1999 <nil>
	// 0 connection reset
	// 0 connection reset
	// open: true, limited: false, so 1899 <nil>
}

// Two endpoints of one service share a breaker. Each has its own limit.
func ExampleJoin() {
	service := breaker.New("service", breaker.Config{})
	read := weir.Join("read", weir.Parts{Breaker: service, Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100)})})
	write := weir.Join("write", weir.Parts{Breaker: service, Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(5)})})
	ok := func(context.Context) error { return nil }
	_ = read.Run(context.Background(), ok)
	_ = write.Run(context.Background(), ok)
	fmt.Println(service.Counts().Successes)
	// Output: 2
}

// A gate with two limits. Calls wait for a token for up to one second.
func ExampleParts() {
	orders := weir.Join("orders", weir.Parts{
		Breaker: breaker.New("orders", breaker.Config{}),
		Limiter: limiter.NewJoint("",
			limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10)}),
			limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(2, time.Hour), Burst: 2}),
		),
		MaxWait: time.Second,
	})
	for range 3 {
		err := orders.Run(context.Background(), func(context.Context) error { return nil })
		fmt.Println(errors.Is(err, limiter.ErrLimited))
	}
	// Output:
	// false
	// false
	// true
}

func ExampleGate_Stats() {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour)})
	for range 3 {
		_ = g.Run(context.Background(), func(context.Context) error { return nil })
	}
	counts := g.Stats()
	fmt.Println(counts.Allowed, counts.Refused)
	// Output: 1 2
}

func ExampleGroup() {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{
		Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1},
	})
	for _, host := range []string{"a.example", "b.example", "a.example"} {
		err := hosts.Get(host).Run(context.Background(), func(context.Context) error {
			return nil // a call to the host
		})
		fmt.Println(host, err != nil)
	}
	// Output:
	// a.example false
	// b.example false
	// a.example true
}

// Validate names all faults at once.
func ExampleConfig() {
	c := weir.Config{Burst: 10, MaxWait: -time.Second, Breaker: breaker.Config{FailureRate: 1.5}}
	fmt.Println(c.Validate())
	// Output:
	// weir: MaxWait is -1s, must be at least 0
	// weir: Burst is 10, must be 0 without a Rate
	// weir: Breaker: breaker: FailureRate is 1.5, must be above 0 and at most 1, or Off
}

func ExampleGroupConfig() {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2}, MaxKeys: 1000})
	ok := func(context.Context) error { return nil }
	for _, host := range []string{"a.example", "a.example", "b.example", "a.example"} {
		fmt.Println(errors.Is(hosts.Get(host).Run(context.Background(), ok), limiter.ErrLimited))
	}
	// Output:
	// false
	// false
	// false
	// true
}

// A gate with RefuseHopeless has returned this error for a call that had 12 ms left.
func ExampleHopelessError() {
	var err error = &weir.HopelessError{Name: "search", Left: 12 * time.Millisecond, Chance: 0.013}

	if hopeless, ok := errors.AsType[*weir.HopelessError](err); ok {
		fmt.Println(errors.Is(err, weir.ErrRefused), hopeless.Left, weir.RetryAfter(err))
	}
	fmt.Println(err)
	// Output:
	// true 12ms 1s
	// gate "search": the deadline is in 12ms, and only 1.3% of the calls succeed within that time
}

// A tenant that no longer exists is removed at once.
func ExampleGroup_Forget() {
	tenants := weir.NewGroup[string]("tenants", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}})
	_ = tenants.Get("acme").Run(context.Background(), func(context.Context) error { return errDown })
	for tenant, gate := range tenants.All() {
		fmt.Println(tenant, gate.Breaker().State())
	}
	fmt.Println(tenants.Forget("acme"), tenants.Len())
	// Output:
	// acme open
	// true 0
}

// A response can be a failure although there is no error.
func ExampleDoResult() {
	shop := weir.New("shop", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}})
	get := func(context.Context) (int, error) { return 503, nil }
	for range 2 {
		status, err := weir.DoResult(context.Background(), shop, get, func(status int, err error) breaker.Outcome {
			if err != nil || status >= 500 {
				return breaker.Failure
			}
			return breaker.Success
		})
		fmt.Println(status, errors.Is(err, breaker.ErrOpen))
	}
	// Output:
	// 503 false
	// 0 true
}
