package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// TakeAt is Take at a given time.
func (l *Limiter) TakeAt(ctx context.Context, at time.Time, key string, n int) (Result, error) {
	each, err := l.takeFromAll(ctx, newRequestKey(key), max(n, 0), at)
	if err != nil {
		return Result{}, err
	}
	return Result{Result: refuseNegative(combineResults(each).Result, n), From: FromServer}, nil
}

// GiveBackAt is Refund at a given time.
func (l *Limiter) GiveBackAt(ctx context.Context, at time.Time, key string, n int) error {
	return l.giveBackAt(ctx, at, 0, key, n)
}

// GiveBackAged is RefundAt at a given time, of permits that were taken so long before.
func (l *Limiter) GiveBackAged(ctx context.Context, at time.Time, age time.Duration, key string, n int) error {
	return l.giveBackAt(ctx, at, age, key, n)
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

// StateKeys are where Redis has what was taken of a key.
func (l *Limiter) StateKeys(key string) []string {
	return l.groups[0].backend.stateKeys(newRequestKey(key))
}

func (l *Limiter) giveBackAt(ctx context.Context, at time.Time, age time.Duration, key string, n int) error {
	var faults []error
	for _, p := range l.groups {
		if err := p.backend.refund(ctx, newRequestKey(key), n, age, at); err != nil {
			faults = append(faults, err)
		}
	}
	return joinErrors(faults)
}

// CellAt is Take at a given time, for a limit of rediscell that need not be valid.
func (l *Link) CellAt(ctx context.Context, at time.Time, limit Limit, key string, n int) (limiter.Result, error) {
	s := cellBackend{namespace: namespace{link: l, name: "replay"}, cellMath: newCellMath(limit.(cellLimit))}
	return s.take(ctx, newRequestKey(key), n, at)
}

// RedisKey is where Redis has a key of CellAt.
func (l *Link) RedisKey(key string) string {
	return namespace{link: l, name: "replay"}.keyBase(tag(key))
}

// TokenCost is what a token costs in µs: whole + part/parts.
func (b TokenBucket) TokenCost() (whole, part, parts int64) { return tokenCost(b.Rate, b.burst()) }

// Check returns what is wrong with a limit.
func Check(limit Limit) error {
	_, err := limit.compile()
	return err
}

// MaxKey is how long a key may be to stand as it is in Redis.
const MaxKey = maxKey

// The faults that tests name.
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
	FaultTrouble     = faultOther
	FaultForeign     = faultForeign
	FaultTooOld      = faultTooOld
	FaultDenied      = faultDenied
	FaultNoTLS       = faultNoTLS
)

// Breaker is the breaker before a stand-alone Redis.
func (l *Link) Breaker() *breaker.Breaker { return l.breaker }

// The values of Result.From.
const (
	FromServer    = fromServer
	FromDenyCache = fromDenyCache
	FromLease     = fromLease
	FromOutage    = fromOutage
)
