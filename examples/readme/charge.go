package readme

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

//readme:charge
var payments = weir.New("payments", weir.Config{Rate: limiter.PerSecond(200), Burst: 50})

// charge sends at most 200 payments per second, and none while the breaker is open.
func charge(ctx context.Context, order Order) (*Receipt, error) {
	receipt, err := weir.Do(ctx, payments, func(ctx context.Context) (*Receipt, error) {
		return client.Charge(ctx, order)
	})
	switch {
	case errors.Is(err, breaker.ErrOpen):
		return nil, fmt.Errorf("payments are down, back in %s: %w", weir.RetryAfter(err), err)
	case errors.Is(err, limiter.ErrLimited):
		return nil, fmt.Errorf("too many payments: %w", err)
	}
	return receipt, err
}

//readme:end
