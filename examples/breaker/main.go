// Command breaker shows a circuit breaker. A service is down for 1.5 seconds: the breaker opens,
// probes the service from time to time, and closes when the service is back.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
)

func main() {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%4.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	users := breaker.New("users", breaker.Config{
		FailureRate: 0.5,
		MinCalls:    10,
		Window:      time.Second,
		Cooldown:    500 * time.Millisecond,
		OnChange:    func(c breaker.Change) { say("--- %s to %s: %s", c.From, c.To, c.Reason) },
	})
	fetch := func(context.Context) (string, error) {
		if t := time.Since(start); t > time.Second && t < 2500*time.Millisecond {
			return "", errors.New("connection refused")
		}
		return "Ada", nil
	}

	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	before, printed := users.Totals(), false
	for call := 1; call <= 200; call++ {
		<-ticker.C
		_, err := breaker.Do(context.Background(), users, fetch)
		if refusal, ok := errors.AsType[*breaker.OpenError](err); ok && !printed {
			printed = true
			say("a caller gets the error: %v (retry in %v)", err, refusal.RetryAfter().Round(time.Millisecond))
		}
		if call%25 == 0 {
			now := users.Totals()
			c := now.Minus(before)
			say("%-9s  %2d answered, %2d failed, %2d refused", users.State(), c.Successes, c.Failures, c.Refused)
			before = now
		}
	}
}
