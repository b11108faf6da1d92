package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/limiter"
)

// TakeAt is Take at a given time.
func (l *Limiter) TakeAt(ctx context.Context, at time.Time, key string, n int) (Result, error) {
	r, err := l.store.decide(ctx, tag(key), max(n, 0), at)
	return Result{Result: negative(r, n), From: FromServer}, err
}

// GiveBackAt is Refund at a given time.
func (l *Limiter) GiveBackAt(ctx context.Context, at time.Time, key string, n int) error {
	return l.store.giveBack(ctx, tag(key), n, 0, at)
}

// GiveBackAged is RefundAt at a given time, of permits that were taken so long before.
func (l *Limiter) GiveBackAged(ctx context.Context, at time.Time, age time.Duration, key string, n int) error {
	return l.store.giveBack(ctx, tag(key), n, age, at)
}

// EachAt is TakeEach at a given time.
func (l *Limiter) EachAt(ctx context.Context, at time.Time, key string, n int) ([]limiter.Result, error) {
	return l.store.each(ctx, tag(key), n, at)
}

// StateKeys are where Redis has what was taken of a key.
func (l *Limiter) StateKeys(key string) []string { return l.store.stateKeys(tag(key)) }

// CellAt is Take at a given time, for a Cell that need not be valid.
func (l *Link) CellAt(ctx context.Context, at time.Time, c Cell, key string, n int) (limiter.Result, error) {
	s := cellStore{namespace: namespace{link: l, name: "replay"}, cell: newCell(c)}
	return s.decide(ctx, tag(key), n, at)
}

// RedisKey is where Redis has a key of CellAt.
func (l *Link) RedisKey(key string) string {
	return namespace{link: l, name: "replay"}.base(tag(key))
}

// TokenCost is what a token costs in µs: whole + part/parts.
func (b TokenBucket) TokenCost() (whole, part, parts int64) { return tokenCost(b.Rate, b.burst()) }
