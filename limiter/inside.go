package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/clock"
	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/stat"
)

// Inside returns functions of limiters for the other packages of this module. Users cannot name the
// key.
func Inside(friend.Key) inside { return inside{} } //nolint:revive // only its methods are needed

// inside has the functions of limiters that other packages of this module use beyond the API.
type inside struct{}

// NewTokenBucket returns a full bucket whose times count from t0.
func (inside) NewTokenBucket(c TokenBucketConfig, t0 time.Time) *TokenBucket {
	return newTokenBucket(c, t0)
}

// TakeFast takes tokens if it can do so quickly, and reports whether it has taken them. at counts
// from the t0 of NewTokenBucket. If TakeFast reports false, TakeAt decides.
func (inside) TakeFast(b *TokenBucket, at time.Duration, n int) bool { return b.takeFast(at, n) }

// Taken returns what TakeFast has taken.
func (inside) Taken(b *TokenBucket, at time.Duration, n int) Reservation {
	return Reservation{owner: b, taken: b.takenAt(b.epoch.Add(at), n)}
}

// Reserve is the function Reserve at the time t. If waits is set, the caller waits after a refusal,
// and a refusal is not counted, because the wait is counted.
func (inside) Reserve(l Limiter, t time.Time, n int, waits bool) (r Reservation) {
	m := asMember(l)
	c := refusedToo
	if waits {
		c = allowedOnly
	}
	r.Result, r.taken = m.tryTake(t, n, c)
	if !waits || r.OK || m.isShadow() {
		r.Result = m.record(r.Result, n)
	}
	if r.taken.n > 0 || n == 0 && r.OK {
		r.owner = m
	}
	return r
}

// Renew is like Reserve, but does not count the request, because tokens that were counted were
// given back.
func (inside) Renew(l Limiter, t time.Time, n int) (r Reservation) {
	m := asMember(l)
	if r.Result, r.taken = m.tryTake(t, n, nothing); r.taken.n > 0 {
		r.owner = m
	}
	r.OK = r.OK || m.isShadow()
	return r
}

// NewCall returns a call of a gate that waits, and counts it as waiting until EndCall.
func (inside) NewCall(r *Requests) waiting.Call {
	r.waiting.Add(1)
	w := &gateWaiter{}
	w.gate = w
	w.Init()
	return &w.waiter
}

// WaitReserve waits for n tokens for at most maxWait, after l has given the answer refused. call
// must be one of NewCall.
func (inside) WaitReserve(ctx context.Context, call waiting.Call, l WaitLimiter, n int, refused Result, maxWait time.Duration) (Reservation, error) {
	w := call.(*waiter)
	w.gate.refused = refused
	if b, ok := l.(*TokenBucket); ok && b.statistics == nil { // the usual case
		t, err := b.queue.waitInQueue(ctx, b, n, maxWait, w)
		return Reservation{owner: b, taken: t}, err
	}
	return waitReserve(ctx, l, n, maxWait, w)
}

// WaitAtMost calls wait, the Wait of a limiter of another package, with a context that ends after
// maxWait. An error that is due to this end, and not to that of ctx, becomes a refusal.
func (inside) WaitAtMost(ctx context.Context, maxWait time.Duration, wait func(ctx context.Context) error) error {
	return waitAtMost(ctx, maxWait, wait)
}

// SetLimits is SetRate and SetBurst in one step, with a valid rate and a valid burst, of which 0
// means the default.
func (inside) SetLimits(b *TokenBucket, r Rate, burst int) { b.setLimits(r, burst) }

// Period returns the time to which the limit of l refers, or 0 if it is not known.
func (inside) Period(l Limiter) time.Duration { return periodOf(l) }

// MaxKeys returns the GroupConfig.MaxKeys that leaves no room for the key of l, or 0 if it is not
// known.
func (inside) MaxKeys(l Limiter) int { return maxKeysOf(l) }

// Interval returns the time after which l has one token more, or 0 if it is not known. It is called
// for each refusal.
func (inside) Interval(l Limiter) time.Duration { return intervalOf(l) }

// PerSecond returns the rate as a number per second.
func (inside) PerSecond(r Rate) float64 { return r.perSecond() }

// NameMaxWait makes the text of a new error say that the MaxWait of a gate was too short, unless it
// is 0.
func (inside) NameMaxWait(e *LimitedError, maxWait time.Duration) { e.wait = maxWait }

// Spread makes RetryAfter of a new error give each caller a different moment.
func (inside) Spread(e *LimitedError, p *places.Places) { e.places = p }

// InitRequests makes the zero r usable, for a limit whose requests are for one token each.
func (inside) InitRequests(r *Requests, name string, created time.Time) {
	r.name, r.created = name, created
}

// Count counts a request for one token with an outcome of package instrument.
func (inside) Count(r *Requests, outcome int) { r.counts[outcome].requests.Add(1) }

// CountNear counts a token near the limit.
func (inside) CountNear(r *Requests) { r.near.Add(1) }

// CountWaiting counts a request that begins to wait, until EndCall.
func (inside) CountWaiting(r *Requests) { r.waiting.Add(1) }

// EndCall counts the end of a wait. allowed reports that the call is made after it.
func (inside) EndCall(r *Requests, took time.Duration, allowed bool) {
	r.waiting.Add(-1)
	if !allowed {
		return
	}
	r.counts[waited].requests.Add(1)
	waits := r.waits.Load()
	if waits == nil { // 2 kB, which most limiters never need
		r.waits.CompareAndSwap(nil, new(latency.Histogram))
		waits = r.waits.Load()
	}
	waits.Record(took)
}

// CountQueueFull counts a request for which the queue was full.
func (inside) CountQueueFull(r *Requests) { r.full.Add(1) }

// Observed says what of the counts a limit exports whose requests are for one token each.
func (inside) Observed(allowed, waiting int64, tokens, near, shadow bool) observed {
	return observed{allowed, waiting, tokens, near, true, shadow}
}

// ObservedTokens is Observed for a limit that counts tokens.
func (inside) ObservedTokens(shadow bool) observed {
	return observed{tokens: true, near: true, shadow: shadow}
}

// CountTokens counts a request for n tokens with an outcome of package instrument.
func (inside) CountTokens(r *Requests, outcome, n int) { r.counts[outcome].add(n) }

// Observe yields the counts and reports whether yield wants more.
func (inside) Observe(r *Requests, o observed, yield func(*stat.Series, float64) bool) bool {
	return r.observe(o, yield)
}

// Series returns the series of r.
func (inside) Series(r *Requests) *instrument.LimiterSeries { return r.series() }

// NewQueue returns a queue of at most maxWaiters callers, or without a bound if that is 0.
func (inside) NewQueue(s waiting.Source, maxWaiters int) waiting.Queue {
	q := &sourceQueue{source: queueSource{s}}
	q.queue.maxWaiters = maxWaiters
	return q
}

// The methods at a given time, for tests that replay recorded behavior.

// ChangeAt is SetRate and SetBurst.
func (inside) ChangeAt(b *TokenBucket, t time.Time, r Rate, burst int) error {
	return errors.Join(b.setRateAt(t.Sub(b.epoch), r), b.setBurstAt(t.Sub(b.epoch), burst))
}

// TokensAt returns the tokens of b.
func (inside) TokensAt(b *TokenBucket, t time.Time) float64 { return b.tokensAt(t.Sub(b.epoch)) }

// ReserveAt is Reserve of b.
func (inside) ReserveAt(b *TokenBucket, t time.Time, n int, maxWait time.Duration) *Reservation {
	return b.reserveAt(t.Sub(b.epoch), n, maxWait)
}

// CancelAt is Refund of all tokens of r before the time to act.
func (inside) CancelAt(r *Reservation, t time.Time) bool {
	return r.OK && r.cancelAt(t.Sub(r.bucket.epoch))
}

// Inside returns functions of groups for the other packages of this module. Users cannot name the
// key.
func (g *Group[K]) Inside(friend.Key) insideGroup[K] { return insideGroup[K]{g} } //nolint:revive // only its methods are needed

// insideGroup has functions of a group. TakeAt, PutBackAt, ChargeAt and LookAt count no request in
// its statistics.
type insideGroup[K comparable] struct{ group *Group[K] }

// TakeAt takes n tokens of a key at the time t.
func (i insideGroup[K]) TakeAt(t time.Time, key K, n int) (r Result) {
	i.group.take(&r, nil, t.Sub(i.group.epoch), clock.GivenTolerance, key, n)
	return r
}

// PutBackAt gives back n tokens that were taken at the time taken. shared is the NoRoom of their
// Result.
func (i insideGroup[K]) PutBackAt(t, taken time.Time, key K, n int, shared bool) {
	if k := i.group.Get(key); n > 0 && !k.isShadow() {
		k.putBack(t, k.takenFrom(taken, n, shared), n)
	}
}

// ChargeAt takes n tokens, even if there are fewer, and reports whether there is room for the key.
func (i insideGroup[K]) ChargeAt(t time.Time, key K, n int) (room bool) {
	return i.group.charge(t.Sub(i.group.epoch), key, n, false)
}

// LookAt returns what TakeAt would return, and takes nothing. The time must have been read from the
// clock.
func (i insideGroup[K]) LookAt(t time.Time, key K, n int) Result {
	k := i.group.Get(key)
	r := k.peek(t, 0, n)
	if !r.OK && k.restartIfNew(t, clock.ReadTolerance) {
		r = k.peek(t, 0, n)
	}
	return r
}

// ForgetAll is Forget for all keys, and ends the hold of all keys.
func (i insideGroup[K]) ForgetAll() { i.group.forgetAll() }

// HoldAll refuses all requests of all keys for d, as [Keyed.Hold] does for one key.
func (i insideGroup[K]) HoldAll(d time.Duration) { i.group.holdAll(d) }

// Figures returns the number of keys that the group has evicted, the number of requests for which
// it had no room, the limit of a key and the time to which it refers.
func (i insideGroup[K]) Figures() (evictions, noRoom int64, limit int, period time.Duration) {
	limit, period = i.group.limit()
	return i.group.evictions(), i.group.withoutRoom(), limit, period
}

// sourceQueue is a waitQueue for a limiter of another package of this module.
type sourceQueue struct {
	queue  waitQueue
	source queueSource
}

func (q *sourceQueue) Wait(ctx context.Context, n int) error {
	_, err := q.queue.wait(ctx, q.source, n, Never, nil)
	return err
}

func (q *sourceQueue) HasWaiters() bool { return q.queue.waitingTokens.Load() != 0 }
func (q *sourceQueue) WakeFirst()       { q.queue.wakeFirst() }

type queueSource struct{ source waiting.Source }

func (s queueSource) acquire(n int) (r Result, _ taken) {
	r.RetryAfter, r.OK = s.source.Acquire(n)
	return r, taken{}
}

func (s queueSource) predict(ahead int64, n int) (r Result) {
	r.RetryAfter, r.OK = s.source.Predict(ahead, n)
	return r
}
