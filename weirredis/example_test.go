package weirredis_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirredis"
)

// Limiter is the interface of go-redis: the type of the field Limiter of redis.Options.
type Limiter interface {
	Allow() error
	ReportResult(result error)
}

func ExampleLimiter() {
	gate := weir.New("cache", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 5}})

	var limiter Limiter = weirredis.New(gate) // the Limiter of redis.Options

	for range 5 { // the server is down
		if limiter.Allow() == nil {
			limiter.ReportResult(io.EOF)
		}
	}
	err := limiter.Allow()
	fmt.Println(errors.Is(err, weir.ErrRefused), gate.Breaker().State())
	// Output: true open
}

// errNil stands for redis.Nil, the error of a key that does not exist.
var errNil error = nilError{}

type nilError struct{}

func (nilError) Error() string { return "redis: nil" }
func (nilError) RedisError()   {}

// The answer that there is no such key is a success of the server.
func Example() {
	cache := weir.New("cache", weir.Config{Breaker: breaker.Config{Classify: weirredis.Classify}})
	for range 30 {
		err := cache.Run(context.Background(), func(context.Context) error {
			return errNil // as client.Get(ctx, "name").Err() does
		})
		if !errors.Is(err, errNil) {
			fmt.Println(err)
		}
	}
	fmt.Println(cache.Breaker().State(), cache.Breaker().Totals().Successes)
	// Output: closed 30
}
