// Command failsafe makes a call through a breaker and a limiter of failsafe-go.
package main

import (
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
)

func main() {
	b := circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build()
	_, err := failsafe.With(ratelimiter.NewBursty[int](10, time.Second), b).Get(func() (int, error) { return 1, nil })
	fmt.Println("hello", err)
}
