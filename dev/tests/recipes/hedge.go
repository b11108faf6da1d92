package recipes

import (
	"context"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// Hedger makes hedged calls.
type Hedger struct {
	Gate   *weir.Gate
	Hedges limiter.Limiter // bounds the second calls
	Delay  time.Duration   // before a second call
}

//readme:hedge

// Run calls fn a second time if the first call takes longer than Delay. The first success wins.
func (h *Hedger) Run(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the other call, which the breaker then ignores
	ended := make(chan error, 2)
	call := func() { ended <- h.Gate.Run(ctx, fn) }
	go call()
	select {
	case err := <-ended:
		return err
	case <-time.After(h.Delay):
	}
	if h.Hedges.Take(1).OK {
		go call()
		if <-ended == nil {
			return nil
		}
	}
	return <-ended
}

//readme:end
