package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// TakeAt is Take at a given time, without leases and remembered refusals.
func (l *Limiter) TakeAt(ctx context.Context, at time.Time, key string, n int) (Result, error) {
	results, err := l.takeFromAll(ctx, newRequestKey(key), max(n, 0), at)
	if err != nil {
		return Result{}, err
	}
	return Result{Result: refuseNegative(combineResults(results).Result, n), From: FromServer}, nil
}

// Refund gives back tokens that Redis has granted at the time taken.
func (l *Limiter) Refund(ctx context.Context, taken time.Time, key string, n int) error {
	if n < 1 {
		return nil
	}
	return l.refund(ctx, newRequestKey(key), n, origin{}, max(time.Since(taken), 0))
}

// GiveBackAt is Refund at a given time.
func (l *Limiter) GiveBackAt(ctx context.Context, at time.Time, key string, n int) error {
	return l.GiveBackAged(ctx, at, 0, key, n)
}

// GiveBackAged is Refund at a given time, for tokens that were taken age earlier.
func (l *Limiter) GiveBackAged(ctx context.Context, at time.Time, age time.Duration, key string, n int) error {
	var errs []error
	for _, g := range l.groups {
		if err := g.backend.refund(ctx, newRequestKey(key), n, age, at); err != nil {
			errs = append(errs, err)
		}
	}
	return joinErrors(errs)
}

// TakeEach is Take with the result of each limit, without leases and remembered refusals.
func (l *Limiter) TakeEach(ctx context.Context, key string, n int) ([]Result, error) {
	return l.takeFromAll(ctx, newRequestKey(key), n, time.Time{})
}

// EachAt is TakeEach at a given time.
func (l *Limiter) EachAt(ctx context.Context, at time.Time, key string, n int) ([]limiter.Result, error) {
	each, err := l.takeFromAll(ctx, newRequestKey(key), n, at)
	var results []limiter.Result
	for _, r := range each {
		results = append(results, r.Result)
	}
	return results, err
}

// StateKeys returns the Redis keys that hold what was taken of a key.
func (l *Limiter) StateKeys(key string) []string {
	return l.groups[0].script.stateKeys(newRequestKey(key))
}

// CellAt is Take at a given time, for a limit of rediscell that need not be valid.
func (l *Link) CellAt(ctx context.Context, at time.Time, limit Limit, key string, n int) (limiter.Result, error) {
	b := cellBackend{namespace: namespace{link: l, name: "replay"}, cellMath: newCellMath(limit.(cellLimit))}
	results, err := b.take(ctx, newRequestKey(key), n, at)
	return results[0], err
}

// RedisKey returns the Redis key in which CellAt stores a key.
func (l *Link) RedisKey(key string) string {
	return namespace{link: l, name: "replay"}.keyBase(keyTag(key))
}

// TokenCost returns what a token costs in µs: whole + part/parts.
func (b TokenBucket) TokenCost() (whole, part, parts int64) {
	c := tokenCostOf(b.Rate, b.burst())
	return c.micros, c.numerator, c.denominator
}

// Check returns the error of an invalid limit.
func Check(limit Limit) error {
	_, err := limit.compile()
	return err
}

// MaxKey is the length in bytes of the longest key that is used unchanged in Redis.
const MaxKey = maxKey

// Values of StoreError.Fault.
const (
	FaultTimeout     = faultTimeout
	FaultConnection  = faultConnection
	FaultLoading     = faultLoading
	FaultReadOnly    = faultReadOnly
	FaultMasterDown  = faultMasterDown
	FaultClusterDown = faultClusterDown
	FaultMoved       = faultMoved
	FaultOutOfMemory = faultOutOfMemory
	FaultBusy        = faultBusy
	FaultOther       = faultOther
	FaultForeign     = faultForeign
	FaultTooOld      = faultTooOld
	FaultDenied      = faultDenied
	FaultNoTLS       = faultNoTLS
)

// Breaker returns the breaker of a stand-alone Redis.
func (l *Link) Breaker() *breaker.Breaker { return l.breaker }

// Values of Result.From.
const (
	FromServer    = fromServer
	FromDenyCache = fromDenyCache
	FromLease     = fromLease
	FromOutage    = fromOutage
)

// SettleAt makes the settlement with an id at a given time, for tokens that were taken age earlier.
func (l *Limiter) SettleAt(ctx context.Context, at time.Time, age time.Duration, key, id string, n int) error {
	var errs []error
	for _, g := range l.groups {
		if err := g.backend.settle(ctx, newRequestKey(key), id, n, age, at); err != nil {
			errs = append(errs, err)
		}
	}
	return joinErrors(errs)
}

// SentEarlier makes the settlement of r older.
func (r *Reservation) SentEarlier(d time.Duration) { r.settlement.sent = r.settlement.sent.Add(-d) }

// RememberedFor is how long Redis remembers a settlement.
const RememberedFor = rememberedFor

// ClockAhead makes the clock of the process wrong, as far as calendar quotas know it.
func (l *Limiter) ClockAhead(d time.Duration) {
	for _, g := range l.groups {
		for _, s := range g.limits {
			if s.periods != nil {
				s.periods.ahead.Store(int64(d))
			}
		}
	}
}
