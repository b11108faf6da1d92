package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/fleet/internal/bridge"
)

// Packages rediscell and redisson have limits and a verb of their own, which are here all the same.
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

// setRate sets the limit and the window of a key, for all nodes: see package redisson.
func (l *Limiter) setRate(ctx context.Context, key string, limit int, window time.Duration) error {
	log, ok := l.onlySlidingLog()
	if !ok {
		return fmt.Errorf("fleet: limiter %q cannot set a rate: its only limit must be a SlidingLog", l.name)
	}
	if err := validateWindow(limit, window); err != nil {
		return err
	}
	k := newRequestKey(key)
	keys := log.redisKeys(l.groups[0].backend.(*scriptBackend).keyBase(k.tag))
	keep := max(keepRate, log.Window, window).Milliseconds()
	_, err := l.link.eval(ctx, setRateScript, []string{keys[1], keys[0]}, []any{limit, window.Microseconds(), keep})
	l.stats.countError(err)
	l.permitsAdded(k)
	return err
}

// onlyLog is the limiter's limit, if that is one sliding log.
func (l *Limiter) onlySlidingLog() (slidingLogSpec, bool) {
	if len(l.groups) != 1 || len(l.groups[0].limits) != 1 || l.groups[0].limits[0].sharedBy != nil {
		return slidingLogSpec{}, false
	}
	log, ok := l.groups[0].limits[0].limitSpec.(slidingLogSpec)
	return log, ok
}
