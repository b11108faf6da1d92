package weir_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// A client that retries each failed call once. While the service is down, only a few retries are
// made.
func ExampleRetryError() {
	payments := weir.New("payments", weir.Config{
		RetryShare: 0.1, RetryBurst: 3,
		Breaker: breaker.Config{MinCalls: 1000},
	})
	calls := 0
	charge := func(context.Context) error {
		calls++
		return errors.New("the service is down")
	}

	for range 50 {
		ctx := context.Background()
		for attempt := range 2 {
			err := payments.Run(weir.WithAttempt(ctx, attempt), charge)
			if _, tooMany := errors.AsType[*weir.RetryError](err); err == nil || tooMany {
				break
			}
		}
	}
	fmt.Println("50 first calls,", calls-50, "retries")
	// Output: 50 first calls, 7 retries
}

// Two gates for the same service share a budget.
func ExampleRetryBudget() {
	retries := weir.NewRetryBudget("warehouse", weir.RetryBudgetConfig{Share: 0.2, Burst: 1})
	read := weir.Join("read", weir.Parts{Breaker: breaker.New("read", breaker.Config{}), Retries: retries})
	write := weir.Join("write", weir.Parts{Breaker: breaker.New("write", breaker.Config{}), Retries: retries})

	retry := weir.WithAttempt(context.Background(), 1)
	call := func(context.Context) error { return nil }
	fmt.Println(read.Run(retry, call))
	fmt.Println(write.Run(retry, call))
	fmt.Println(retries.Totals().Failures, "retry,", retries.Totals().Refused, "refused")
	// Output:
	// <nil>
	// retry budget "warehouse" is used up: it allows 0.2 retries per first call
	// 1 retry, 1 refused
}

func ExampleRetryBudgetConfig() {
	fmt.Println(weir.RetryBudgetConfig{Share: 20}.Validate())
	// Output: weir: Share is 20, must be between 0.001 and 1
}
