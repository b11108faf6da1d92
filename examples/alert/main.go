// Command alert shows an alert that fires while a service fails and resolves after that,
// with no monitoring server. In a service the times would be minutes.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	start := time.Now()
	payments := weir.New("payments", weir.Config{})

	tell := alert.Func("stdout", func(_ context.Context, a alert.Alert) error {
		fmt.Printf("%4.1fs  %s\n", time.Since(start).Seconds(), a)
		return nil
	})
	monitor := alert.NewMonitor(
		alert.Config{Interval: 100 * time.Millisecond, Notify: []alert.Notifier{tell}},
		alert.Rule{
			Name:     "payments fail",
			Value:    alert.FailureRate(payments, time.Second),
			When:     alert.Above(0.05),
			Resolve:  alert.Below(0.02),
			MinCalls: 20,
			For:      500 * time.Millisecond,
		},
	)

	var parts sync.WaitGroup
	parts.Go(func() { monitor.Run(ctx) })
	parts.Go(func() { pay(ctx, payments, start) })
	parts.Wait()
}

// pay makes a hundred payments a second. From the first second to the third, every fifth
// of them fails: too few for the breaker, too many for us.
func pay(ctx context.Context, payments *weir.Gate, start time.Time) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for call := 0; ; call++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		seconds := time.Since(start).Seconds()
		fails := seconds > 1 && seconds < 3 && call%5 == 0
		_ = payments.Run(ctx, func(context.Context) error { // the gate keeps count of the errors
			if fails {
				return errors.New("declined")
			}
			return nil
		})
		if call%50 == 49 {
			now := payments.Totals()
			fmt.Printf("%4.1fs  breaker %s, %d of %d payments failed\n", seconds, payments.State(), now.Failures, now.Calls())
		}
	}
}
