package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
)

func Example() {
	users := breaker.New("users", breaker.Config{MinCalls: 4, Cooldown: time.Minute})
	fetch := func(context.Context) (string, error) { return "", errors.New("connection refused") }
	for range 5 {
		_, err := breaker.Do(context.Background(), users, fetch)
		fmt.Println("refused:", errors.Is(err, breaker.ErrOpen))
	}
	// The breaker opened with the fourth failure, so the fifth call was not made.
	fmt.Println(users.State(), "after", users.Totals().Failures, "failures")
	// Output:
	// refused: false
	// refused: false
	// refused: false
	// refused: false
	// refused: true
	// open after 4 failures
}

func ExampleBreaker() {
	b := breaker.New("users", breaker.Config{MinCalls: 2})
	down := func(context.Context) error { return errors.New("down") }
	_ = b.Run(context.Background(), down)
	_ = b.Run(context.Background(), down)
	fmt.Println(b.State(), b.Counts().FailureRate())
	// Output: open 1
}

func ExampleOpenError() {
	b := breaker.New("users", breaker.Config{MinCalls: 1, Cooldown: time.Minute})
	_ = b.Run(context.Background(), func(context.Context) error { return errors.New("down") })
	err := b.Run(context.Background(), func(context.Context) error { return nil })
	if refusal, ok := errors.AsType[*breaker.OpenError](err); ok {
		fmt.Println(refusal.Name, "is", refusal.State, "because of", refusal.Reason)
		fmt.Println("try again in", refusal.RetryAfter().Round(time.Minute))
	}
	// Output:
	// users is open because of failure rate 100% of 1 calls, limit 50%
	// try again in 1m0s
}

// A permit guards something that is not one function call.
func ExamplePermit() {
	b := breaker.New("stream", breaker.Config{})
	ctx := context.Background()
	stream := func(open, send func() error) error {
		permit, err := b.Allow()
		if err != nil {
			return err
		}
		defer permit.Record(ctx, nil, breaker.Failure) // counts only if Done is not called
		if err := open(); err != nil {
			return err
		}
		err = send()
		permit.Done(ctx, err)
		return err
	}
	works := func() error { return nil }
	fails := func() error { return errors.New("down") }
	fmt.Println(stream(works, works), stream(works, fails), stream(fails, works))
	fmt.Println(b.Counts().Successes, "success,", b.Counts().Failures, "failures")
	// Output:
	// <nil> down down
	// 1 success, 2 failures
}

// With one breaker per tenant, failures of one tenant do not stop the calls of other tenants.
func ExampleGroup() {
	tenants := breaker.NewGroup[string]("tenants", breaker.GroupConfig{
		Breaker: breaker.Config{MinCalls: 2},
	})
	query := func(tenant string) (rows int, err error) {
		return breaker.Do(context.Background(), tenants.Get(tenant), func(context.Context) (int, error) {
			if tenant == "acme" {
				return 0, errors.New("the shard is down")
			}
			return 42, nil
		})
	}
	for range 2 {
		_, err := query("acme")
		fmt.Println(err)
	}
	_, err := query("acme")
	fmt.Println("refused:", errors.Is(err, breaker.ErrOpen))
	fmt.Println(query("globex"))
	// Output:
	// the shard is down
	// the shard is down
	// refused: true
	// 42 <nil>
}

func ExampleChange() {
	b := breaker.New("users", breaker.Config{MinCalls: 2, OnChange: func(c breaker.Change) {
		fmt.Printf("%s to %s: %s\n", c.From, c.To, c.Reason)
	}})
	for range 2 {
		_ = b.Run(context.Background(), func(context.Context) error { return errors.New("down") })
	}
	// Output: closed to open: failure rate 100% of 2 calls, limit 50%
}

func ExampleConfig_classify() {
	errNotFound := errors.New("not found")
	b := breaker.New("users", breaker.Config{Classify: func(err error) breaker.Outcome {
		if errors.Is(err, errNotFound) {
			return breaker.Success // the service did its work
		}
		return breaker.DefaultClassify(err)
	}})
	_ = b.Run(context.Background(), func(context.Context) error { return errNotFound })
	fmt.Println(b.Counts().Successes, b.Counts().Failures)
	// Output: 1 0
}

func ExampleOutcome() {
	b := breaker.New("users", breaker.Config{})
	permit, err := b.Allow()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(permit.Record(context.Background(), nil, breaker.Ignored), b.Counts().Ignored, b.Counts().Calls())
	// Output: true 1 0
}

// A result that is recorded after the state has changed does not count.
func ExamplePermit_Record_late() {
	b := breaker.New("users", breaker.Config{})
	late, err := b.Allow()
	if err != nil {
		fmt.Println(err)
		return
	}
	b.Force(breaker.ForcedClosed, "")
	fmt.Println(late.Record(context.Background(), nil, breaker.Failure), b.Totals().Calls())
	// Output: false 0
}

func ExampleState() {
	fmt.Println(breaker.Closed, breaker.Open, breaker.HalfOpen)
	// Output: closed open half_open
}

func ExampleBreaker_Force() {
	b := breaker.New("users", breaker.Config{})
	b.Force(breaker.ForcedOpen, "maintenance until 18:00")
	fmt.Println(b.Run(context.Background(), func(context.Context) error { return nil }))
	b.Release()
	fmt.Println(b.Run(context.Background(), func(context.Context) error { return nil }))
	// Output:
	// breaker "users" is forced open: maintenance until 18:00
	// <nil>
}

// A new breaker can begin in the state Shadow, in which it refuses nothing.
func ExampleBreaker_Force_shadow() {
	b := breaker.New("users", breaker.Config{
		MinCalls: 2, Force: breaker.Shadow,
		OnChange: func(c breaker.Change) { fmt.Println(c.Reason) },
	})
	for range 3 {
		_ = b.Run(context.Background(), func(context.Context) error { return errors.New("down") })
	}
	_, refused := b.ShadowTotals()
	fmt.Println("let through:", b.Totals().Calls(), "would have been refused:", refused)
	// Output:
	// would open: failure rate 100% of 2 calls, limit 50%
	// let through: 3 would have been refused: 1
}

func ExampleDoResult() {
	b := breaker.New("users", breaker.Config{})
	status, err := breaker.DoResult(context.Background(), b,
		func(context.Context) (int, error) { return 503, nil },
		func(status int, err error) breaker.Outcome {
			if status >= 500 {
				return breaker.Failure
			}
			return breaker.DefaultClassify(err)
		})
	fmt.Println(status, err, b.Counts().Failures)
	// Output: 503 <nil> 1
}

func ExampleBreaker_Reconfigure() {
	b := breaker.New("users", breaker.Config{})
	_ = b.Run(context.Background(), func(context.Context) error { return errors.New("down") })
	err := b.Reconfigure(breaker.Config{MinCalls: 2, FailureRate: 0.9})
	_ = b.Run(context.Background(), func(context.Context) error { return errors.New("down") })
	fmt.Println(err, b.State())
	// Output: <nil> open
}

func ExampleClassifier() {
	errNotFound := errors.New("not found")
	b := breaker.New("users", breaker.Config{
		Classify: breaker.Accept(errNotFound).Ignore(context.DeadlineExceeded),
	})
	for _, err := range []error{errNotFound, context.DeadlineExceeded, errors.New("down")} {
		_ = b.Run(context.Background(), func(context.Context) error { return fmt.Errorf("user 7: %w", err) })
	}
	c := b.Counts()
	fmt.Println(c.Successes, "success,", c.Ignored, "ignored,", c.Failures, "failure")
	// Output: 1 success, 1 ignored, 1 failure
}

// A service that answers "not found" works. The caller still gets the error.
func ExampleAccept() {
	errNotFound := errors.New("not found")
	users := breaker.New("users", breaker.Config{
		MinCalls: 5,
		Classify: breaker.Accept(errNotFound),
	})
	var err error
	for id := range 50 {
		_, err = breaker.Do(context.Background(), users, func(context.Context) (string, error) {
			return "", fmt.Errorf("user %d: %w", id, errNotFound)
		})
	}
	fmt.Println(err)
	fmt.Println(users.State(), "after", users.Counts().Successes, "successes and", users.Counts().Failures, "failures")
	// Output:
	// user 49: not found
	// closed after 50 successes and 0 failures
}
