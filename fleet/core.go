package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/fleet/internal/deny"
	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/limiter"
)

// core is what all limiters of a fleet have in common.
type core struct {
	name  string
	link  *Link
	store store
	limit int // the most that can be taken at once, by the config
	away  fallback
	lines lines
	book  book

	denied *deny.Cache  // nil where refusals are not remembered
	leases *lease.Purse // nil where there are none
}

// store is how a limiter asks Redis.
type store interface {
	// decide takes n permits, looks for 0, and gives back −n below that. The time is the server's where at is zero; others are
	// for tests and replays.
	decide(ctx context.Context, key string, n int, at time.Time) (limiter.Result, error)
	// stateKeys are where Redis has what was taken of a key.
	stateKeys(key string) []string
}

// newCore makes the core of a limiter, all but its store. It panics with what is wrong with what it is given.
func newCore(l *Link, name string, c Config, limits ...Limit) *core {
	faults := []error{validateName(name), c.Validate()}
	if l == nil {
		faults = append(faults, errors.New("fleet: the link is nil"))
	}
	for _, limit := range limits {
		faults = append(faults, limit.Validate())
	}
	if err := errors.Join(faults...); err != nil {
		panic(err)
	}
	k := &core{name: name, link: l, lines: lines{max: c.MaxWaiters}, denied: newDenied(c)}
	k.leases = newLeases(k, c)
	k.book.build(name)
	return k
}

// Name is the name.
func (k *core) Name() string { return k.name }

// Take takes n permits of the key now, all of them or none.
//
// It blocks for as long as Redis takes, up to the link's Timeout, also where ctx is cancelled meanwhile. The error says that
// there is no decision: Redis is away and the policy is Error (then it is a [*StoreError] that matches [ErrAway]), the key holds
// something else ([ErrForeign]), or ctx was done. Where ctx was done before Redis answered, or Redis did not answer in time, the
// permits may have been taken there all the same.
func (k *core) Take(ctx context.Context, key string, n int) (Result, error) {
	r, err := k.decide(ctx, key, n)
	k.book.count(r, err, n)
	return r, err
}

// Peek tells how things stand for the key, and changes nothing, nor does it leave anything behind in Redis.
func (k *core) Peek(ctx context.Context, key string) (Result, error) { return k.decide(ctx, key, 0) }

// Refund gives n permits back to the key, as if they had never been taken: never more than fills it up. Where what counts is a
// log or a window, it is the oldest that still count, which can only err on the strict side. n below 1 does nothing. The error says
// that Redis gave no answer; it is not asked again.
func (k *core) Refund(ctx context.Context, key string, n int) error {
	if n < 1 {
		return nil
	}
	_, err := k.store.decide(ctx, key, -n, time.Time{})
	if errors.Is(err, ErrAway) {
		k.away.refund(key, n)
	}
	k.book.fault(err)
	k.changed(key)
	return err
}

// Reset forgets what has been taken of the key. The error says that Redis gave no answer.
func (k *core) Reset(ctx context.Context, key string) error {
	_, err := k.link.eval(ctx, resetScript, k.store.stateKeys(key), nil)
	k.book.fault(err)
	if k.leases != nil {
		k.leases.Forget(key)
	}
	k.changed(key)
	return err
}

// decide answers a request in the quickest way there is: from memory, from Redis, or by the policy where that is away.
func (k *core) decide(ctx context.Context, key string, n int) (Result, error) {
	look := k.denied.Look(key, n)
	if look.Refused {
		return Result{Result: look.Result, From: FromDenyCache}, nil
	}
	r, from, err := k.ask(ctx, key, max(n, 0))
	if err != nil {
		k.book.fault(err)
		return k.withoutRedis(key, n, err)
	}
	if !k.rounds() {
		look.Remember(r)
	}
	return Result{Result: negative(r, n), From: from}, nil
}

// negative makes a refusal of the answer to a request for fewer than 0.
func negative(r limiter.Result, n int) limiter.Result {
	if n < 0 {
		r.OK, r.RetryAfter = false, limiter.Never
	}
	return r
}

// withoutRedis decides by the policy where Redis has not, for that reason.
func (k *core) withoutRedis(key string, n int, why error) (Result, error) {
	if !errors.Is(why, ErrAway) || k.away.away == Error {
		return Result{}, why
	}
	again := k.link.timeout
	if e, ok := errors.AsType[*StoreError](why); ok {
		again = max(e.RetryAfter(), again)
	}
	return Result{Result: k.away.decide(key, n, k.limit, again), From: FromAway}, nil
}

// base is what all Redis keys of a user begin with.
func (k *core) base(key string) string { return k.link.prefix + k.name + ":{" + tag(key) + "}" }
