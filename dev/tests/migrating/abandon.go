package migrating

import (
	"context"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

// lookup does not obey its context.
type lookup func() (*User, error)

//readme:abandon

// abandon calls fn and returns what fn returns, or the error of ctx as soon as ctx is done. fn
// then goes on alone. It keeps its goroutine, and its slot in running, until it returns.
func abandon[T any](ctx context.Context, running *inflight.Limiter, fn func() (T, error)) (v T, err error) {
	type result struct {
		v   T
		err error
	}
	slot, err := running.TryAcquire(ctx)
	if err != nil {
		return v, err
	}
	ended := make(chan result, 1) // fn never waits for a caller that is gone
	go func() {
		defer slot.Done(ctx, nil)
		v, err := fn()
		ended <- result{v, err}
	}()
	select {
	case r := <-ended:
		return r.v, r.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

//readme:end

//readme:abandon-use
var running = inflight.New(inflight.Config{Limit: 100})

func lookUp(ctx context.Context, b *breaker.Breaker, find lookup) (*User, error) {
	return breaker.Do(ctx, b, func(ctx context.Context) (*User, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return abandon(ctx, running, find)
	})
}

//readme:end
