package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
)

// Hedger makes hedged calls.
type Hedger struct {
	Gate  *weir.Gate    // its retry budget bounds the second calls
	Delay time.Duration // before a second call
}

//readme:hedge

// Run calls fn a second time if the first call takes longer than Delay. The first success wins.
func (h *Hedger) Run(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the other call, which the breaker then ignores
	ended := make(chan error, 2)
	call := func(attempt int) { ended <- h.Gate.Run(weir.WithAttempt(ctx, attempt), fn) }
	go call(0)
	select {
	case err := <-ended:
		return err
	case <-time.After(h.Delay):
	}
	go call(1)
	err := <-ended
	if err == nil {
		return nil
	}
	if other := <-ended; !errors.Is(other, weir.ErrRefused) {
		return other
	}
	return err
}

//readme:end
