package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/fleet/internal/deny"
	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/limiter"
)

const (
	defaultMaxDenied = 10_000
	maxDeniedTime    = 10 * time.Second // the longest time for which a refusal is remembered

	maxLeasedKeys = 10_000
	leaseIdleTime = time.Second // a lease that is not used for this time is given back
)

// newDenied returns a cache of refusals, or nil if it is off.
func newDenied(c Config) *deny.Cache {
	switch c.MaxDenied {
	case limiter.Off:
		return nil
	case 0:
		c.MaxDenied = defaultMaxDenied
	}
	return deny.New(c.MaxDenied, maxDeniedTime)
}

// newLeases returns the leases of a limiter, or nil if it has none.
func newLeases(l *Limiter, c Config) *lease.Pool {
	if c.MaxLease == 0 {
		return nil
	}
	return lease.New(leaseServer{l}, lease.Config{Max: c.MaxLease, Keys: maxLeasedKeys, Age: leaseIdleTime, Timeout: l.link.timeout})
}

// Close gives all leased tokens back and takes no further leases. The limiter can still be used.
// An error means that Redis did not answer; then leased tokens are lost, as if they had been used.
// Close does nothing if the limiter has no leases.
func (l *Limiter) Close(ctx context.Context) error {
	if l.leases == nil {
		return nil
	}
	return l.leases.Close(ctx)
}

// takeFromLease takes from a lease, from Redis, or from the policy if Redis is unavailable.
func (l *Limiter) takeFromLease(ctx context.Context, k requestKey, n int) (Result, origin, error) {
	leased, held, age, err := l.leases.Take(ctx, k.tag, n)
	switch {
	case err == nil && held:
		return Result{Result: leased, From: fromLease}, origin{age: age}, nil
	case err == nil:
		return Result{Result: leased, From: fromServer}, origin{}, nil
	case ctx.Err() == nil:
		err = l.link.storeError(err) // the Timeout has passed, not the caller's deadline
	}
	if !l.policyDecides(err) {
		return Result{}, origin{}, err
	}
	r := combineFrom(fromOutage, l.groups[0].outage.take(k, n, l.untilRetry(err)))
	return r, origin{byPolicy: []bool{true}}, nil
}

// leaseServer is Redis as the leases of a limiter use it. A limiter with leases has one group.
type leaseServer struct{ limiter *Limiter }

func (s leaseServer) Take(ctx context.Context, tag string, n int) (limiter.Result, error) {
	results, err := s.limiter.groups[0].backend.take(ctx, requestKey{tag: tag}, n, time.Time{})
	if err != nil {
		return limiter.Result{}, err
	}
	return combineFrom(fromServer, results).Result, nil
}

func (s leaseServer) Refund(ctx context.Context, tag string, n int, age time.Duration) error {
	k := requestKey{tag: tag}
	err := s.limiter.groups[0].backend.refund(ctx, k, n, age, time.Time{})
	s.limiter.stats.countError(err)
	s.limiter.tokensReturned(k)
	return err
}
