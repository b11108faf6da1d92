package breaker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/breaker"
)

func ExampleFailedCall() {
	type trace struct{} // the key of the trace ID in a context
	payments := breaker.New("payments", breaker.Config{
		ConsecutiveFailures: 2,
		DescribeFailure: func(ctx context.Context, _ error, f *breaker.FailedCall) {
			if id, ok := ctx.Value(trace{}).(string); ok {
				f.Note = "trace " + id
			}
		},
	})
	for _, id := range []string{"4bf9", "a3ce"} {
		ctx := context.WithValue(context.Background(), trace{}, id)
		_ = payments.Run(ctx, func(context.Context) error { return errors.New("no route to the bank") })
	}
	err := payments.Run(context.Background(), func(context.Context) error { return nil })
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		fmt.Println(open.Margin)
		for _, f := range open.LastFailures {
			fmt.Printf("%s: %s (%s)\n", f.Kind, f.Message, f.Note)
		}
	}
	// Output:
	// 1 failure fewer in a row would not have opened it
	// error: no route to the bank (trace 4bf9)
	// error: no route to the bank (trace a3ce)
}
