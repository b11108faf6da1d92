package fleet

import (
	"cmp"
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
// and limits share what has been taken, in any number of processes.
//
// A Limiter is a [stat.Source]. All methods are safe for concurrent use. Those that ask Redis
// block: see Take. The zero value does not work: use [NewLimiter].
type Limiter struct {
	name       string
	link       *Link
	groups     []*limitGroup // one, unless several servers must decide
	limitCount int
	maxTake    int // the most tokens that one request can take, by the config
	maxKeys    int // of FailLocal
	slowest    limitSpec
	shared     bool // some limit is a Shared
	waiting    waitQueues
	stats      statistics
	refusals   *limiter.Group[string] // counts refused keys for Busiest, and limits nothing

	denied *deny.Cache // nil if refusals are not remembered
	leases *lease.Pool // nil if there are no leases
}

// NewLimiter returns a limiter. The name is part of errors, metrics and Redis keys. NewLimiter
// panics with the error of c.Validate if there is one, and if the name is empty or contains braces.
func NewLimiter(name string, c Config) *Limiter {
	if err := errors.Join(validateName(name), c.Validate()); err != nil {
		panic(err)
	}
	limits, _ := c.compile() // c is valid
	l := &Limiter{
		name: name, link: c.Link, waiting: waitQueues{max: c.MaxWaiters}, denied: newDenied(c),
		limitCount: len(limits), maxTake: maxTakeOfAll(limits), maxKeys: c.maxKeys(),
	}
	l.slowest = slices.MinFunc(limits, func(a, b limitSpec) int {
		return cmp.Compare(a.events/a.per.Seconds(), b.events/b.per.Seconds())
	})
	l.groups = groupLimits(namespace{link: c.Link, name: name}, c, limits, &l.stats.noRoom)
	l.shared = slices.ContainsFunc(limits, func(s limitSpec) bool { return s.sharedBy != nil })
	l.leases = newLeases(l, c)
	l.stats.init(name)
	l.refusals = newRefusals(name, c.ShowKeys)
	return l
}

// Name returns the name of the limiter.
func (l *Limiter) Name() string { return l.name }

// Take takes n tokens of the key now, all of them or none. If there are several limits, it takes n
// tokens from each of them, or none from any. The result is that of all limits together: the least
// Limit and Remaining, and the longest RetryAfter and ResetAfter. Take of 0 tokens only reports
// the state: it changes nothing and stores nothing in Redis. Tokens held in leases count as taken.
//
// Take blocks until Redis answers, up to the Timeout of the link. With [Shared] limits on several
// servers that applies to each server, and again to each server that gets tokens back. If ctx ends
// first, Take returns at once. What it was sending goes on in a goroutine until Redis answers or
// the Timeout has passed.
//
// An error means that there is no decision:
//
//   - Redis is unavailable and OnOutage is FailError: a [*StoreError] that matches
//     [ErrUnavailable].
//   - The key holds a value that no limiter of this kind has written: [ErrForeign].
//   - The server cannot be used: [ErrServer].
//   - ctx has ended.
//
// If ctx ended before Redis answered, or Redis did not answer in time, the tokens may have been
// taken nevertheless.
func (l *Limiter) Take(ctx context.Context, key string, n int) (Result, error) {
	r, _, err := l.take(ctx, key, n)
	return r, err
}

func (l *Limiter) take(ctx context.Context, key string, n int) (Result, origin, error) {
	r, from, err := l.takeNow(ctx, newRequestKey(key), n)
	l.stats.countDecision(r, err, n)
	if err == nil && !r.OK && n != 0 {
		l.countRefusedKey(key)
	}
	return r, from, err
}

// Limit returns the rate and the burst of the limit. If there are several, it returns those of the
// limit with the lowest rate. The live page shows them.
func (l *Limiter) Limit() (rate limiter.Rate, burst int) {
	return limiter.Per(l.slowest.events, l.slowest.per), l.slowest.maxTake
}

// Reset forgets what has been taken of the key. What [Shared] limits have counted stays. An error
// means that Redis did not answer, or that all limits are Shared.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	k := newRequestKey(key)
	var keys []string
	for _, g := range l.groups {
		keys = append(keys, g.script.stateKeys(k)...) // only one group has limits of single keys
	}
	if len(keys) == 0 {
		return fmt.Errorf("fleet: limiter %q has nothing to reset: its limits are Shared", l.name)
	}
	_, err := l.link.eval(ctx, resetScript, keys, nil)
	l.stats.countError(err)
	if l.leases != nil {
		l.leases.Forget(k.tag)
	}
	l.tokensReturned(k)
	return err
}

// takeNow decides from memory, from a lease, from Redis or by the policy.
func (l *Limiter) takeNow(ctx context.Context, k requestKey, n int) (Result, origin, error) {
	denial := l.denied.Lookup(k.tag, n)
	if denial.Refused {
		return Result{Result: denial.Result, From: fromDenyCache}, origin{}, nil
	}
	r, from, err := l.takeUncached(ctx, k, max(n, 0))
	if err != nil {
		return Result{}, from, err
	}
	if r.From != fromOutage && !l.roundsToSeconds() {
		denial.Remember(r.Result)
	}
	r.Result = refuseNegative(r.Result, n)
	return r, from, nil
}

func (l *Limiter) takeUncached(ctx context.Context, k requestKey, n int) (Result, origin, error) {
	if l.leases != nil {
		return l.takeFromLease(ctx, k, n)
	}
	results, err := l.takeFromAll(ctx, k, n, time.Time{})
	if err != nil {
		return Result{}, origin{}, err
	}
	return combineResults(results), l.originOf(results), nil
}

// tokensReturned forgets refusals that may no longer hold because tokens have returned to the key,
// and makes its waiters ask again. If there is a Shared limit, it does so for all keys.
func (l *Limiter) tokensReturned(k requestKey) {
	if l.shared {
		l.denied.ForgetAll()
	} else {
		l.denied.Forget(k.tag)
	}
	l.wake(k, l.shared)
}

// untilRetry returns how long to wait after an error before the next request to Redis.
func (l *Limiter) untilRetry(err error) time.Duration {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return max(e.RetryAfter(), l.link.timeout)
	}
	return l.link.timeout
}

// joinErrors is like errors.Join, but returns a single error unchanged.
func joinErrors(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
