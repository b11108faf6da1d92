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

func (k keyed) Refund(ctx context.Context, taken time.Time, n int) error {
	return k.limiter.Refund(ctx, taken, k.key, n)
}

func (k keyed) Wait(ctx context.Context, n int) error { return k.limiter.Wait(ctx, k.key, n) }

func (k keyed) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return k.limiter.WaitAtMost(ctx, k.key, n, maxWait)
}
