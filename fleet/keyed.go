package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Keyed is the limit of one key as a [limiter.Limiter], for whatever takes one, such as weir.Join.
//
// Unlike local limiters it blocks for as long as Redis takes, up to the link's Timeout. Times are the server's alone. Where there
// is no decision (see Take of the limiters) it refuses; choose another policy than Error to have it decide.
type Keyed struct {
	core *core
	key  string
}

var (
	_ limiter.Limiter = (*Keyed)(nil)
	_ limiter.Waiter  = (*Keyed)(nil)
)

// Get returns the limiter of one key.
func (k *core) Get(key string) *Keyed { return &Keyed{core: k, key: key} }

// Take takes n permits, all or none.
func (l *Keyed) Take(n int) limiter.Result {
	r, err := l.core.Take(context.Background(), l.key, n)
	if err != nil {
		return limiter.Result{Limit: l.core.limit, RetryAfter: l.core.link.timeout}
	}
	return r.Result
}

// TakeAt is Take: nobody but the server says what time it is.
func (l *Keyed) TakeAt(_ time.Time, n int) limiter.Result { return l.Take(n) }

// Refund gives n permits back. Where Redis is away they are lost.
func (l *Keyed) Refund(n int) {
	_ = l.core.Refund(context.Background(), l.key, n) // counted by the limiter
}

// Wait takes n permits as soon as there are that many, and returns nil then.
func (l *Keyed) Wait(ctx context.Context, n int) error { return l.core.Wait(ctx, l.key, n) }

// TryWait is Wait that gives up where it would take longer than limit.
func (l *Keyed) TryWait(ctx context.Context, n int, limit time.Duration) error {
	return l.core.TryWait(ctx, l.key, n, limit)
}
