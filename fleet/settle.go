package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// rememberedFor is how long Redis remembers a settlement. It is twice the longest Timeout, so that
// a settlement whose reply did not come can be sent again at least once.
const rememberedFor = 2 * time.Minute

// rememberedMillis is the argument of a script for a settlement with an id, or for none.
func rememberedMillis(id string) int64 {
	if id == "" {
		return 0
	}
	return rememberedFor.Milliseconds()
}

// settlementKey returns the Redis key of a settlement, which is in the slot of the tag.
func (ns namespace) settlementKey(tag, id string) string {
	return ns.keyBase(tag) + ":settled:" + id
}

// settlement is a number of tokens that each server takes or gives back once, however often it is
// told.
type settlement struct {
	id   string
	n    int       // negative to give back
	sent time.Time // when it was first sent
	made []bool    // by group of limits
}

func (l *Limiter) newSettlement(n int) (*settlement, error) {
	if n > l.maxCharge {
		return nil, fmt.Errorf("fleet: limiter %q cannot charge %d tokens more than were reserved, at most %d", l.name, n, l.maxCharge)
	}
	return &settlement{id: rand.Text(), n: n, sent: time.Now(), made: make([]bool, len(l.groups))}, nil
}

// Settle charges the request for n tokens instead of those that it has reserved and not given back.
// If it has used fewer, the others are given back as by Refund. If it has used more, these become a
// debt: Redis takes them at once, whether it has them or not, and refuses requests until the debt
// is paid. So in any span, what is used is at most what the limits allow, and what the requests in
// flight at its end have used beyond their reservations.
//
// If Settle returns no error, the reservation is settled: Settle and Refund do nothing after that.
// They do nothing for a reservation that was refused. A negative n counts as 0. Tokens that the
// policy [OnOutage] granted are settled in its limit in this process.
//
// An error means that some server did not answer, or that ctx has ended: [context.WithoutCancel]
// settles what a cancelled call has used. Then call Settle again: Redis remembers for two minutes
// which settlements it has made, and makes none of them twice. All calls settle the n of the first.
// Later, no tokens are given back any more, and a debt may be charged twice, so that the limits
// hold. Settle itself sends a settlement once more if the connection was lost, because that costs
// little time. After a timeout, the caller decides.
//
// If a process ends without Settle, the reservation stays charged. So reserve what is to be charged
// then. Reset, an eviction and FLUSHALL forget a debt, as all that was taken.
//
// The debt of a bucket, of a limit of package rediscell and of a FixedWindow is paid at the rate of
// the limit, and is cut to what is paid in 50 years. A SlidingWindow and a SlidingLog have no such
// rate: they count what was used beyond Limit for one Window. A CalendarQuota counts it until the
// period ends. A window or a period counts at most 2^31-1 tokens. So Settle returns an error, and
// changes nothing, if n is above the reservation by more than that, or by more than 2^40 if all
// limits are buckets.
func (r *Reservation) Settle(ctx context.Context, n int) error {
	if !r.open {
		return nil
	}
	if r.settlement == nil {
		s, err := r.limiter.newSettlement(max(n, 0) - r.left)
		if err != nil {
			return err
		}
		r.settlement, r.left = s, 0
	}
	err := r.limiter.settle(ctx, r.key, r.settlement, r.origin, max(time.Since(r.taken), 0))
	r.open = err != nil && !errors.Is(err, errForgotten)
	return err
}

var errForgotten = errors.New("fleet: Redis may have made the settlement and forgotten that, so nothing is given back")

// settle makes a settlement at the servers that have not made it yet.
func (l *Limiter) settle(ctx context.Context, k requestKey, s *settlement, from origin, age time.Duration) error {
	if s.n == 0 {
		return nil
	}
	if s.n < 0 && time.Since(s.sent)+l.link.timeout > rememberedFor {
		return errForgotten
	}
	var errs []error
	for i, g := range l.groups {
		if s.made[i] {
			continue
		}
		var err error
		if i < len(from.byPolicy) && from.byPolicy[i] {
			g.outage.settle(k, s.n, age)
		} else {
			err = l.settleGroup(ctx, g, k, s, age)
		}
		if s.made[i] = err == nil; err != nil {
			errs = append(errs, err)
		}
	}
	if s.n < 0 {
		l.tokensReturned(k)
	}
	return joinErrors(errs)
}

// settleGroup makes a settlement at one server.
func (l *Limiter) settleGroup(ctx context.Context, g *limitGroup, k requestKey, s *settlement, age time.Duration) error {
	err := g.backend.settle(ctx, k, s.id, s.n, age, time.Time{})
	l.stats.countError(err)
	if e, ok := errors.AsType[*StoreError](err); ok && e.Fault == faultConnection {
		err = g.backend.settle(ctx, k, s.id, s.n, age, time.Time{})
		l.stats.countError(err)
	}
	return err
}

// charge takes n tokens of the key, whether there are as many or not. While Redis is unavailable,
// FailLocal charges this node's share. The other policies keep no count, so the error is returned.
func (l *Limiter) charge(ctx context.Context, key string, n int) error {
	if n < 1 {
		return nil
	}
	s, err := l.newSettlement(n)
	if err != nil {
		return err
	}
	k := newRequestKey(key)
	err = l.settle(ctx, k, s, origin{}, 0)
	if l.groups[0].outage.policy != FailLocal || !errors.Is(err, ErrUnavailable) {
		return err
	}
	for i, g := range l.groups {
		if !s.made[i] {
			g.outage.settle(k, n, 0)
		}
	}
	return nil
}
