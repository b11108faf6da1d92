package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Keyed is the limit of one key as a [limiter.Remote] and a [limiter.WaitLimiter], such as
// weir.Parts takes: see [Limiter.Get].
type Keyed struct {
	limiter *Limiter
	key     string
}

var (
	_ limiter.Remote      = (*Keyed)(nil)
	_ limiter.WaitLimiter = (*Keyed)(nil)
)

// Get returns the limit of one key.
func (l *Limiter) Get(key string) *Keyed { return &Keyed{limiter: l, key: key} }

// Take is [Limiter.Take] for the key.
func (k *Keyed) Take(ctx context.Context, n int) (limiter.Result, error) {
	r, err := k.limiter.Take(ctx, k.key, n)
	return r.Result, err
}

// Refund is [Limiter.Refund] for the key.
func (k *Keyed) Refund(ctx context.Context, n int) error { return k.limiter.Refund(ctx, k.key, n) }

// Wait is [Limiter.Wait] for the key.
func (k *Keyed) Wait(ctx context.Context, n int) error { return k.limiter.Wait(ctx, k.key, n) }

// WaitAtMost is [Limiter.WaitAtMost] for the key.
func (k *Keyed) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return k.limiter.WaitAtMost(ctx, k.key, n, maxWait)
}
