package fleet

import (
	"context"
	"time"
)

// TakeAt is Take at a given time.
func (k *core) TakeAt(ctx context.Context, at time.Time, key string, n int) (Result, error) {
	r, err := k.store.decide(ctx, key, max(n, 0), at)
	return Result{Result: negative(r, n)}, err
}

// RefundAt is Refund at a given time.
func (k *core) RefundAt(ctx context.Context, at time.Time, key string, n int) error {
	_, err := k.store.decide(ctx, key, -n, at)
	return err
}

// StateKeys are where Redis has what was taken of a key.
func (k *core) StateKeys(key string) []string { return k.store.stateKeys(key) }

// ThrottleAt is Throttle.Ask at a given time, for a limit that need not be valid.
func (l *Link) ThrottleAt(ctx context.Context, at time.Time, c Cell, key string, n int) (Reply, error) {
	s := cellStore{cell: newCell(c), core: &core{name: "replay", link: l}}
	r, err := s.decide(ctx, key, n, at)
	return replyOf(r), err
}

// RedisKey is where Redis has a key of ThrottleAt.
func (l *Link) RedisKey(key string) string { return (&core{name: "replay", link: l}).base(key) }

// ReplyOf is the answer of CL.THROTTLE for a result.
func ReplyOf(r Result) Reply { return replyOf(r.Result) }

// TokenCost is what a token costs in µs: whole + part/parts.
func (b Bucket) TokenCost() (whole, part, parts int64) { return tokenCost(b.Rate, b.burst()) }

// EachAt is TakeEach at a given time.
func (a *All) EachAt(ctx context.Context, at time.Time, key string, n int) (each []Result, err error) {
	reply, err := a.all.eval(ctx, key, n, at)
	for ; len(reply) >= figures; reply = reply[figures:] {
		each = append(each, Result{Result: single(reply)})
	}
	return each, err
}
