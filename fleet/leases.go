package fleet

import (
	"context"
	"time"

	"github.com/weir-go/weir/fleet/internal/deny"
	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/limiter"
)

const (
	defaultDenied = 10_000
	denyFor       = 10 * time.Second // the longest that a refusal is remembered
	leaseKeys     = 10_000           // the most keys with leases
	leaseAge      = time.Second      // what has not been asked for in this time is given back
)

// newDenied makes a memory of refusals, nil where there is none.
func newDenied(c Config) *deny.Cache {
	switch c.MaxDenied {
	case Off:
		return nil
	case 0:
		c.MaxDenied = defaultDenied
	}
	return deny.New(c.MaxDenied, denyFor)
}

// newLeases makes a purse for the leases of a limiter, nil where there are none.
func newLeases(l *Limiter, c Config) *lease.Pool {
	if c.MaxLease < 2 {
		return nil
	}
	return lease.New(leaseServer{l}, lease.Config{Max: c.MaxLease, Keys: leaseKeys, Age: leaseAge, Timeout: l.link.timeout})
}

// Close gives back what is left of leases, and takes none from then on. The limiter still decides.
// The error says that Redis gave no answer; permits are lost then, as if they had been used.
//
// A limiter without leases has nothing to close.
func (l *Limiter) Close(ctx context.Context) error {
	if l.leases == nil {
		return nil
	}
	return l.leases.Close(ctx)
}

// ask has a lease decide, or Redis, or the policy where Redis is unavailable.
func (l *Limiter) takeUncached(ctx context.Context, k requestKey, n int) (limiter.Result, string, error) {
	if len(l.groups) > 1 {
		each, err := l.takeFromAll(ctx, k, n, time.Time{})
		if err != nil {
			return limiter.Result{}, "", err
		}
		r := combineResults(each)
		return r.Result, r.From, nil
	}
	r, from, err := l.takeFromLeaseOrRedis(ctx, k, n)
	if err == nil {
		return r, from, nil
	}
	l.stats.countError(err)
	if p := l.groups[0]; p.outage.decidesAfter(err) {
		return combine(p.outage.decide(k, n, l.untilRetry(err))), fromOutage, nil
	}
	return limiter.Result{}, "", err
}

// askOne has a lease decide, or the only part.
func (l *Limiter) takeFromLeaseOrRedis(ctx context.Context, k requestKey, n int) (limiter.Result, string, error) {
	if l.leases == nil {
		r, err := l.groups[0].backend.take(ctx, k, n, time.Time{})
		return r, fromServer, err
	}
	r, held, err := l.leases.Take(ctx, k.tag, n)
	if held {
		return r, fromLease, err
	}
	if err != nil && ctx.Err() == nil {
		err = l.link.storeError(err) // the time is up that Redis may take, and not the caller's
	}
	return r, fromServer, err
}

// changed makes known that the key, or all with which it shares a limit, may have more permits than Redis said.
func (l *Limiter) permitsAdded(k requestKey) {
	if l.shared {
		l.denied.ForgetAll()
		l.waiting.wakeEachFirst(k.waiter)
		return
	}
	l.denied.Forget(k.tag)
	l.waiting.wakeFirst(k.tag, k.waiter)
}

// granter is Redis as leases see it.
type leaseServer struct{ limiter *Limiter }

func (g leaseServer) Take(ctx context.Context, tag string, n int) (limiter.Result, error) {
	return g.limiter.groups[0].backend.take(ctx, requestKey{tag: tag}, n, time.Time{})
}

func (g leaseServer) Refund(ctx context.Context, tag string, n int, age time.Duration) error {
	k := requestKey{tag: tag}
	err := g.limiter.groups[0].backend.refund(ctx, k, n, age, time.Time{})
	g.limiter.stats.countError(err)
	g.limiter.permitsAdded(k)
	return err
}
