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
	maxCharge  int // the most tokens that one settlement can take
	maxKeys    int // of FailLocal
	slowest    limitSpec
	shared     bool // some limit is a Shared
	waiting    waitQueues
	stats      statistics

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
		limitCount: len(limits), maxTake: maxTakeOfAll(limits), maxCharge: maxChargeOfAll(limits), maxKeys: c.maxKeys(),
	}
	l.slowest = slices.MinFunc(limits, func(a, b limitSpec) int {
		return cmp.Compare(a.events/a.per.Seconds(), b.events/b.per.Seconds())
	})
	l.groups = groupLimits(namespace{link: c.Link, name: name}, c, limits, &l.stats.noRoom)
	l.shared = slices.ContainsFunc(limits, func(s limitSpec) bool { return s.sharedBy != nil })
	l.leases = newLeases(l, c)
	l.stats.init(name, c.ShowKeys)
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
	if err == nil && n != 0 {
		l.stats.requests.Record(r.Result, n)
		if !r.OK {
			l.stats.requests.RecordKey(key)
		}
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

// Result is the answer of a [Limiter].
type Result struct {
	limiter.Result
	// From says who decided:
	//
	//   - "server": Redis.
	//   - "deny cache": this process. It repeats a refusal by Redis that still holds.
	//   - "lease": this process. It uses a token that it took from Redis in advance.
	//   - "outage": the policy [OnOutage], because Redis is unavailable.
	From string
}

// Values of Result.From.
const (
	fromServer    = "server"
	fromDenyCache = "deny cache"
	fromLease     = "lease"
	fromOutage    = "outage"
)

// Reservation is what a request has taken. It knows when the tokens were taken, and whether Redis
// or the policy granted them, so that unused tokens can be given back without allowing too
// many requests. Tokens that are neither given back nor settled stay taken, whatever becomes of the
// process. It must not be used by several goroutines at once.
type Reservation struct {
	Result

	limiter *Limiter
	key     requestKey
	origin  origin
	taken   time.Time
	left    int // tokens that can be given back

	open       bool        // granted, and not settled
	settlement *settlement // if Settle was called, and some server has not answered yet
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
// for example if the call is not made, and [Reservation.Settle] corrects their number when the cost
// of the request is known. If Reserve returns an error, there is no Reservation.
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
		reserved.left, reserved.open = max(n, 0), true
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
		if i < len(from.byPolicy) && from.byPolicy[i] {
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

// keyed is the limit of one key.
type keyed struct {
	limiter *Limiter
	key     string
}

var (
	_ limiter.Remote      = keyed{}
	_ limiter.WaitLimiter = keyed{}
)

// Get returns the limit of one key, for the Remote field of weir.Parts. It also implements
// [limiter.WaitLimiter], and has the methods that [limiter.Remote] describes.
func (l *Limiter) Get(key string) limiter.Remote { return keyed{limiter: l, key: key} }

// MaxKeys is as limiter.Remote describes it.
func (k keyed) MaxKeys() int { return k.limiter.maxKeys }

func (k keyed) Take(ctx context.Context, n int) (limiter.Result, error) {
	r, err := k.limiter.Take(ctx, k.key, n)
	return r.Result, err
}

// Reserve is as limiter.Remote describes it.
func (k keyed) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	r, err := k.limiter.Reserve(ctx, k.key, n)
	if err != nil {
		return limiter.Result{}, nil, err
	}
	return r.Result.Result, r.Refund, nil
}

// WaitReserve is as limiter.Remote describes it.
func (k keyed) WaitReserve(ctx context.Context, n int) (func(context.Context, int) error, error) {
	began := time.Now()
	from, err := k.limiter.waitFor(ctx, k.key, n)
	if err != nil {
		return nil, err
	}
	return k.limiter.reservation(Result{Result: limiter.Result{OK: true}}, from, began, k.key, n).Refund, nil
}

// Charge is as limiter.Remote describes it.
func (k keyed) Charge(ctx context.Context, n int) error { return k.limiter.charge(ctx, k.key, n) }

func (k keyed) Wait(ctx context.Context, n int) error { return k.limiter.Wait(ctx, k.key, n) }
