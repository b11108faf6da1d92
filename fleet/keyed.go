package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/limiter"
)

// keyed is the limit of one key.
type keyed struct {
	limiter *Limiter
	key     string
}

var (
	_ limiter.Remote      = keyed{}
	_ limiter.WaitLimiter = keyed{}
)

// Get returns the limit of one key, for the Remote field of weir.Parts. It also implements
// [limiter.WaitLimiter], and has the methods that
// [limiter.Remote] describes.
func (l *Limiter) Get(key string) limiter.Remote { return keyed{limiter: l, key: key} }

// MaxKeys is as limiter.Remote describes it.
func (k keyed) MaxKeys() int { return k.limiter.maxKeys }

func (k keyed) Take(ctx context.Context, n int) (limiter.Result, error) {
	r, err := k.limiter.Take(ctx, k.key, n)
	return r.Result, err
}

// Reserve is as limiter.Remote describes it.
func (k keyed) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	r, err := k.limiter.Reserve(ctx, k.key, n)
	if err != nil {
		return limiter.Result{}, nil, err
	}
	return r.Result.Result, r.Refund, nil
}

// WaitReserve is as limiter.Remote describes it.
func (k keyed) WaitReserve(ctx context.Context, n int, maxWait time.Duration) (func(context.Context, int) error, error) {
	began := time.Now()
	from, err := k.limiter.waitFor(ctx, k.key, n, maxWait)
	if err != nil {
		return nil, err
	}
	return k.limiter.reservation(Result{Result: limiter.Result{OK: true}}, from, began, k.key, n).Refund, nil
}

func (k keyed) Wait(ctx context.Context, n int) error { return k.limiter.Wait(ctx, k.key, n) }

func (k keyed) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return k.limiter.WaitAtMost(ctx, k.key, n, maxWait)
}
