package recipes

import (
	"context"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

//readme:hedge

// Hedge calls fn a second time if the first call takes longer than delay. The first success wins.
func Hedge(ctx context.Context, gate *weir.Gate, hedges limiter.Limiter, delay time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the other call, which the breaker then ignores
	ended := make(chan error, 2)
	call := func() { ended <- gate.Run(ctx, fn) }
	go call()
	select {
	case err := <-ended:
		return err
	case <-time.After(delay):
	}
	if hedges.Take(1).OK {
		go call()
		if <-ended == nil {
			return nil
		}
	}
	return <-ended
}

//readme:end
