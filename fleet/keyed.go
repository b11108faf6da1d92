package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Keyed is the limit of one key as a [limiter.Limiter], for whatever takes one, such as weir.Join.
//
// Unlike local limiters it blocks for as long as Redis takes, up to the link's Timeout. Times are
// the server's alone, so TakeAt ignores its time. Where there is no decision (see [Limiter.Take]) it
// refuses; choose another policy than Error to have it decide.
type Keyed struct {
	limiter *Limiter
	key     string
}

var (
	_ limiter.Limiter     = (*Keyed)(nil)
	_ limiter.WaitLimiter = (*Keyed)(nil)
)

// Get returns the limiter of one key.
func (l *Limiter) Get(key string) *Keyed { return &Keyed{limiter: l, key: key} }

// Take takes n permits, all or none.
func (k *Keyed) Take(n int) limiter.Result {
	r, err := k.limiter.Take(context.Background(), k.key, n)
	if err != nil {
		return limiter.Result{Limit: k.limiter.limit, RetryAfter: k.limiter.link.timeout}
	}
	return r.Result
}

// TakeAt is Take: nobody but the server says what time it is.
func (k *Keyed) TakeAt(_ time.Time, n int) limiter.Result { return k.Take(n) }

// Refund gives n permits back. Where Redis is away they are lost.
func (k *Keyed) Refund(n int) {
	_ = k.limiter.Refund(context.Background(), k.key, n) // counted by the limiter
}

// RefundAt is Refund of permits that were taken at a time, of which it gives back what still
// counts.
func (k *Keyed) RefundAt(taken time.Time, n int) {
	_ = k.limiter.RefundAt(context.Background(), taken, k.key, n) // counted by the limiter
}

// Wait takes n permits as soon as there are that many, and returns nil then.
func (k *Keyed) Wait(ctx context.Context, n int) error { return k.limiter.Wait(ctx, k.key, n) }

// WaitAtMost is Wait that gives up where it would take longer than maxWait.
func (k *Keyed) WaitAtMost(ctx context.Context, n int, maxWait time.Duration) error {
	return k.limiter.WaitAtMost(ctx, k.key, n, maxWait)
}
