package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/fleet/internal/bridge"
)

// Packages rediscell and redisson reach unexported parts of this package through package bridge.
var _ = func() bool {
	bridge.Cell = func(maxBurst, count int, period time.Duration) any {
		return cellLimit{MaxBurst: maxBurst, Count: count, Period: period}
	}
	bridge.PerClient = func(log any, client string) any { return clientLog{log.(SlidingLog), client} }
	bridge.SetRate = func(ctx context.Context, l any, key string, limit int, window time.Duration) error {
		return l.(*Limiter).setRate(ctx, key, limit, window)
	}
	return true
}()

// setRate sets the limit and the window of a key for all nodes: see package redisson.
func (l *Limiter) setRate(ctx context.Context, key string, limit int, window time.Duration) error {
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
