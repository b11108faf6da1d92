package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/fleet/internal/deny"
	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/limiter"
)

// Limiter keeps the limits of a fleet for any number of keys. Limiters with the same prefix, name
// and limits, in any number of processes, share what has been taken.
//
// It is a [stat.Source]. All methods are safe for concurrent use, and block: see Take. The zero
// value does not work: use [NewLimiter].
type Limiter struct {
	name    string
	link    *Link
	groups  []*limitGroup // one, unless keys of several servers are decided about
	count   int           // how many there are
	limit   int           // the most that can be taken at once, by the config
	shared  bool          // some limit is that of several keys
	waiting waitQueues
	stats   statistics

	denied *deny.Cache // nil where refusals are not remembered
	leases *lease.Pool // nil where there are none
}

// store is how a limiter asks Redis.
type backend interface {
	// decide takes n permits, or looks for 0. The time is the server's where at is zero; others are
	// for tests and replays.
	take(ctx context.Context, k requestKey, n int, at time.Time) (limiter.Result, error)
	// each is decide with the answers of each limit, in the order of the config.
	takeEach(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error)
	// giveBack gives back those of n permits, taken so long ago, that still count.
	refund(ctx context.Context, k requestKey, n int, age time.Duration, at time.Time) error
	// stateKeys are where Redis has what was taken of a key by itself.
	stateKeys(k requestKey) []string
}

// NewLimiter returns a limiter. It panics with the error of c.Validate if there is one, and if the
// name is empty or has braces. The name is part of errors, metrics and Redis keys.
func NewLimiter(name string, c Config) *Limiter {
	if err := errors.Join(validateName(name), c.Validate()); err != nil {
		panic(err)
	}
	terms, _ := c.compile() // has no faults
	l := &Limiter{name: name, link: c.Link, waiting: waitQueues{max: c.MaxWaiters}, denied: newDenied(c), count: len(terms), limit: maxTakeOfAll(terms)}
	l.groups = groupLimits(namespace{link: c.Link, name: name}, c, terms)
	l.shared = slices.ContainsFunc(terms, func(t scopedLimit) bool { return t.sharedBy != nil })
	l.leases = newLeases(l, c)
	l.stats.init(name)
	return l
}

// Take takes n permits of the key now, all of them or none. If there are several limits, it takes n
// permits of each of them, or none of any. The result is that of all limits together: the least
// Limit and Remaining, the largest RetryAfter and ResetAfter. Take of 0 reports how things stand,
// changes nothing and leaves nothing behind in Redis; permits that are held in leases count as taken.
//
// Take blocks for as long as Redis takes, up to the link's Timeout. (With [Shared] limits on several
// servers: up to the Timeout for each of them, and for each that something is given back to.) If ctx ends meanwhile, Take returns
// at once, unless this call is the one that sends the command to Redis, for itself and others: then it
// stays until Redis has answered or the Timeout is over. An error means that there is no decision: Redis is unavailable and the policy is FailError (a
// [*StoreError] that matches [ErrUnavailable]), the key holds a value that no limiter of this kind has
// written ([ErrForeign]), or ctx was done. If ctx was done before Redis answered, or Redis did not
// answer in time, the permits may have been taken all the same.
func (l *Limiter) Take(ctx context.Context, key string, n int) (Result, error) {
	r, err := l.takeNow(ctx, newRequestKey(key), n)
	l.stats.countDecision(r, err, n)
	return r, err
}

// TakeEach is Take that returns the result of each limit, in the order of [Config].Limits: which of
// them refused, how the others stand, and who decided about each. Nothing has been taken unless all are OK.
func (l *Limiter) TakeEach(ctx context.Context, key string, n int) ([]Result, error) {
	each, err := l.takeFromAll(ctx, newRequestKey(key), max(n, 0), time.Time{})
	if err != nil {
		return nil, err
	}
	for i := range each {
		each[i].Result = refuseNegative(each[i].Result, n)
	}
	l.stats.countDecision(combineResults(each), nil, n)
	return each, nil
}

// Refund gives n permits back to the key, as if they had never been taken. It never fills a limit
// above its maximum. A window or a log gives back the oldest permits that still count, which can
// only err on the strict side. Refund does nothing if n is below 1. An error means that Redis gave
// no answer; it is not asked again.
//
// Refund is for permits that were taken a moment ago. If they may have come back by themselves
// meanwhile, because their window is over or the bucket has filled up, it would give back permits
// of others: use RefundAt.
func (l *Limiter) Refund(ctx context.Context, key string, n int) error {
	return l.refund(ctx, newRequestKey(key), n, 0)
}

// RefundAt is Refund of permits that were taken at a time of this process: that before the call of
// Take. It gives back only what still counts: nothing if their window is over, and of a bucket no
// more than cannot have come again since.
func (l *Limiter) RefundAt(ctx context.Context, taken time.Time, key string, n int) error {
	return l.refund(ctx, newRequestKey(key), n, max(time.Since(taken), 0))
}

func (l *Limiter) refund(ctx context.Context, k requestKey, n int, age time.Duration) error {
	if n < 1 {
		return nil
	}
	var faults []error
	for _, p := range l.groups {
		err := p.backend.refund(ctx, k, n, age, time.Time{})
		if errors.Is(err, ErrUnavailable) {
			p.outage.refund(k, n, age)
		}
		if l.stats.countError(err); err != nil {
			faults = append(faults, err)
		}
	}
	l.permitsAdded(k)
	return joinErrors(faults)
}

// Reset forgets what has been taken of the key; what a [Shared] limit has counted stays. An error
// means that Redis gave no answer, or that all limits are Shared.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	k := newRequestKey(key)
	var keys []string
	for _, p := range l.groups {
		keys = append(keys, p.backend.stateKeys(k)...) // of one part at most
	}
	if len(keys) == 0 {
		return fmt.Errorf("fleet: limiter %q has nothing to reset: its limits are Shared", l.name)
	}
	_, err := l.link.eval(ctx, resetScript, keys, nil)
	l.stats.countError(err)
	if l.leases != nil {
		l.leases.Forget(k.tag)
	}
	l.permitsAdded(k)
	return err
}

// together is the only one of some errors, or all of them as one.
func joinErrors(faults []error) error {
	if len(faults) == 1 {
		return faults[0]
	}
	return errors.Join(faults...)
}

// decide answers a request in the quickest way there is: from memory, from Redis, or by the policy
// if Redis is unavailable.
func (l *Limiter) takeNow(ctx context.Context, k requestKey, n int) (Result, error) {
	look := l.denied.Lookup(k.tag, n)
	if look.Refused {
		return Result{Result: look.Result, From: fromDenyCache}, nil
	}
	r, from, err := l.takeUncached(ctx, k, max(n, 0))
	if err != nil {
		return Result{}, err
	}
	if from != fromOutage && !l.roundsToSeconds() {
		look.Remember(r)
	}
	return Result{Result: refuseNegative(r, n), From: from}, nil
}

// negative makes a refusal of the answer to a request for fewer than 0.
func refuseNegative(r limiter.Result, n int) limiter.Result {
	if n < 0 {
		r.OK, r.RetryAfter = false, limiter.Never
	}
	return r
}

// again is when Redis may be asked again that gave an error.
func (l *Limiter) untilRetry(why error) time.Duration {
	if e, ok := errors.AsType[*StoreError](why); ok {
		return max(e.RetryAfter(), l.link.timeout)
	}
	return l.link.timeout
}
