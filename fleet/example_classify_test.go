package fleet_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// The client returns redis.Nil for a missing key, which is not a failure of Redis.
func Example_redisNil() {
	cache := weir.New("cache", weir.Config{Breaker: breaker.Config{Classify: breaker.Accept(redis.Nil)}})
	for range 30 {
		_, err := weir.Do(context.Background(), cache, func(context.Context) (string, error) {
			return "", redis.Nil // as Get returns for a missing key
		})
		if err != redis.Nil { //nolint:errorlint // Do returns the error of the call unchanged, not wrapped
			fmt.Println(err)
		}
	}
	fmt.Println(cache.Breaker().State(), cache.Breaker().Counts().Failures)
	// Output: closed 0
}
