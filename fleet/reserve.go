package fleet

import (
	"context"
	"time"
)

// Reservation is what a request has taken. It knows when the tokens were taken, and whether Redis
// or the policy granted them, so that unused tokens can be given back without allowing too
// many requests. It must not be used by several goroutines at once.
type Reservation struct {
	Result

	limiter *Limiter
	key     requestKey
	origin  origin
	taken   time.Time
	left    int // tokens that can be given back
}

// origin says where tokens come from, so that they return there. The zero value is Redis.
type origin struct {
	byPolicy []bool        // which groups of limits the policy has decided; nil for none
	age      time.Duration // how long a lease has held them
}

// originOf returns the origin of the tokens of a request with these results.
func (l *Limiter) originOf(results []Result) (o origin) {
	for i, g := range l.groups {
		if results[g.limits[0].index].From != fromOutage {
			continue
		}
		if o.byPolicy == nil {
			o.byPolicy = make([]bool, len(l.groups))
		}
		o.byPolicy[i] = true
	}
	return o
}

// Reserve takes n tokens of the key as Take does. They can be given back with [Reservation.Refund],
// for example if the call is not made, or if a request has cost less than expected. If Reserve
// returns an error, there is no Reservation.
func (l *Limiter) Reserve(ctx context.Context, key string, n int) (*Reservation, error) {
	began := time.Now()
	r, from, err := l.take(ctx, key, n)
	if err != nil {
		return nil, err
	}
	return l.reservation(r, from, began, key, n), nil
}

func (l *Limiter) reservation(r Result, from origin, began time.Time, key string, n int) *Reservation {
	reserved := &Reservation{Result: r, limiter: l, key: newRequestKey(key), origin: from, taken: began.Add(-from.age)}
	if r.OK {
		reserved.left = max(n, 0)
	}
	return reserved
}

// Refund gives back n of the tokens, or all that are left if there are fewer. It does nothing if n
// is below 1. Tokens that the policy [OnOutage] granted return to its limit in this process, and
// those of Redis to Redis. Only tokens that still count are given back: none if the window has
// passed, and to a bucket only those that have not been refilled since. A window or a log gives
// back the oldest tokens that still count, which can only make it stricter. An error means that
// Redis did not answer; the tokens are not sent again.
func (r *Reservation) Refund(ctx context.Context, n int) error {
	if n = min(n, r.left); n < 1 {
		return nil
	}
	r.left -= n
	return r.limiter.refund(ctx, r.key, n, r.origin, max(time.Since(r.taken), 0))
}

// refund gives n tokens back that were taken age ago.
func (l *Limiter) refund(ctx context.Context, k requestKey, n int, from origin, age time.Duration) error {
	var errs []error
	for i, g := range l.groups {
		if from.byPolicy != nil && from.byPolicy[i] {
			g.outage.refund(k, n, age)
			continue
		}
		err := g.backend.refund(ctx, k, n, age, time.Time{})
		if l.stats.countError(err); err != nil {
			errs = append(errs, err)
		}
	}
	l.tokensReturned(k)
	return joinErrors(errs)
}
