package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

//readme:jobgate

// NewExports returns the gate of a job. It allows 50 items per second until three in a row fail.
func NewExports() *weir.Gate {
	return weir.New("exports", weir.Config{
		Rate: limiter.PerSecond(50), Burst: 1, MaxWait: time.Minute,
		Breaker: breaker.Config{ConsecutiveFailures: 3, Probes: 1, Recovery: breaker.Off},
	})
}

//readme:end

//readme:job

// Export sends items. It returns those that are left for the next run of the job.
func Export(ctx context.Context, gate *weir.Gate, items []string, send func(context.Context, string) error) (left []string, err error) {
	for i, item := range items {
		err := gate.Run(ctx, func(ctx context.Context) error { return send(ctx, item) })
		if errors.Is(err, breaker.ErrOpen) || ctx.Err() != nil {
			return append(left, items[i:]...), fmt.Errorf("the run ended early: %w", err)
		} else if err != nil {
			left = append(left, item)
		}
	}
	return left, nil
}

//readme:end
