package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/fleet/internal/friend"
)

// Inside returns functions for packages rediscell and redisson. Users cannot name the key.
func Inside(friend.Key) inside { return inside{} } //nolint:revive // only its methods are needed

type inside struct{}

// Cell returns the limit of CL.THROTTLE.
func (inside) Cell(maxBurst, count int, period time.Duration) Limit {
	return cellLimit{MaxBurst: maxBurst, Count: count, Period: period}
}

// PerClient returns the limit that applies log to each client.
func (inside) PerClient(log SlidingLog, client string) Limit { return clientLog{log, client} }

// SetRate sets the limit and the window of a key for all nodes: see package redisson.
func (inside) SetRate(ctx context.Context, l *Limiter, key string, limit int, window time.Duration) error {
	s := l.groups[0].script
	if l.limitCount != 1 || l.shared || s.limits[0].script != logScript {
		return fmt.Errorf("fleet: limiter %q cannot set a rate: its only limit must be a SlidingLog", l.name)
	}
	if err := validateWindow(limit, window); err != nil {
		return err
	}
	k := newRequestKey(key)
	keys := s.keysOf(k, s.limits[0])
	lifetime := max(rateLifetime, s.limits[0].per, window).Milliseconds()
	_, err := l.link.eval(ctx, setRateScript, []string{keys[1], keys[0]}, []any{limit, window.Microseconds(), lifetime})
	l.stats.countError(err)
	l.tokensReturned(k)
	return err
}
