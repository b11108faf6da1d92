package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/fleet/internal/kinds"
)

// Packages rediscell and redisson have limits and a verb of their own, which are here all the same.
var _ = func() bool {
	kinds.Cell = func(maxBurst, count int, period time.Duration) any {
		return cellLimit{MaxBurst: maxBurst, Count: count, Period: period}
	}
	kinds.PerClient = func(log any, client string) any { return clientLog{log.(SlidingLog), client} }
	kinds.SetRate = func(ctx context.Context, l any, key string, limit int, window time.Duration) error {
		return l.(*Limiter).setRate(ctx, key, limit, window)
	}
	return true
}()

// setRate sets the limit and the window of a key, for all nodes: see package redisson.
func (l *Limiter) setRate(ctx context.Context, key string, limit int, window time.Duration) error {
	log, ok := l.onlyLog()
	if !ok {
		return fmt.Errorf("fleet: limiter %q cannot set a rate: its only limit must be a SlidingLog", l.name)
	}
	if err := validateWindow(limit, window); err != nil {
		return err
	}
	k := targetOf(key)
	keys := log.keys(l.parts[0].store.(*scripted).base(k.tag))
	keep := max(keepRate, log.Window, window).Milliseconds()
	_, err := l.link.eval(ctx, setRateScript, []string{keys[1], keys[0]}, []any{limit, window.Microseconds(), keep})
	l.book.fault(err)
	l.changed(k)
	return err
}

// onlyLog is the limiter's limit, if that is one sliding log.
func (l *Limiter) onlyLog() (logRule, bool) {
	if len(l.parts) != 1 || len(l.parts[0].terms) != 1 || l.parts[0].terms[0].by != nil {
		return logRule{}, false
	}
	log, ok := l.parts[0].terms[0].rule.(logRule)
	return log, ok
}
