package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

// Reservation is what a request has taken. It knows when the tokens were taken, so that tokens
// which are not used can be given back at any time without allowing too many requests. Its Result
// says whether the tokens were taken.
//
// If the cost of a request is known only afterwards, reserve an estimate and settle the actual
// cost, for example the tokens of a language model:
//
//	r := limiter.Reserve(tokens, estimate)
//	if !r.OK { … }
//	answer, err := ask(question)
//	r.Settle(answer.Tokens)
//
// Tokens that are neither given back nor settled stay taken. A Reservation must not be copied, nor
// be used by several goroutines at once.
type Reservation struct {
	Result

	// Delay is how long to wait before acting, from the time of the reservation; 0 means at once.
	// Only [TokenBucket.Reserve] sets it.
	Delay time.Duration

	owner giver // nil if nothing was taken
	taken taken

	*future            // nil unless it was made by TokenBucket.Reserve
	deadline *deadline // nil without SettleAfter
}

// deadline settles a reservation that is not settled before. Its timer is the only one that uses
// the reservation from another goroutine. Others use it only if they have stopped the timer.
type deadline struct {
	timer *time.Timer
	at    time.Time
}

// future is what [TokenBucket.Reserve] knows of its reservation.
type future struct {
	bucket    *TokenBucket
	state     *bucketState
	due       time.Duration // the time to act
	promise                 // of this reservation
	before    promise       // the last promise before it
	cancelled bool
}

// giver is a limiter that takes tokens back, and charges for more tokens.
type giver interface {
	// charge takes n more tokens, at least 1, for the request that has taken back, whether there
	// are that many or not.
	charge(now time.Time, back taken, n int)
	// putBack gives back n of the tokens in back, from 1 to back.n, as far as they have not come
	// back by themselves by the time now. It returns what is left of back.
	putBack(now time.Time, back taken, n int) taken
}

// taken is what a request has taken. The zero value is nothing.
type taken struct {
	n  int           // the tokens that were not given back
	at time.Duration // when they were taken, since the epoch of the limiter

	// Of limits: the position at which the bucket was full afterwards, and all units that had been
	// given back before.
	end, refunded int64
	limits        *limits

	shared *TokenBucket // where they were taken, if it was the bucket of all keys without room
	parts  []taken      // by limiter of a Joint, or nil if the request was for no tokens
	none   bool         // a limiter of a Joint has taken nothing, in shadow mode
	when   time.Time    // of a limiter of another package, instead of at
}

// takenBy returns what a request for n tokens with the result r has taken at a time.
func takenBy(r Result, at time.Duration, n int) (t taken) {
	if r.OK && n > 0 {
		t.n, t.at = n, at
	}
	return t
}

// use removes n tokens that are given back, and returns n.
func (t *taken) use(n int) int {
	t.n -= n
	return n
}

// Reserve takes n tokens of l, or none if there are fewer, as l.Take does. The tokens can be given
// back with [Reservation.Refund], for example if another limit refuses the request, and
// [Reservation.Settle] corrects their number.
func Reserve(l Limiter, n int) *Reservation {
	r := inside{}.Reserve(l, time.Now(), n, false)
	return &r
}

// WaitReserve takes n tokens of l as soon as there are that many, as l.Wait does. If it returns no
// error, the reservation is OK, and the other fields of its Result are not set. If l cannot wait,
// it is refused with a *[LimitedError] if there are fewer tokens.
func WaitReserve(ctx context.Context, l Limiter, n int) (*Reservation, error) {
	waits, ok := l.(WaitLimiter)
	if !ok {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := Reserve(l, n)
		if !r.OK && !isPeek(r.Result, n) {
			return nil, refusalOf(r.Result, n)
		}
		return r, nil
	}
	r, err := waitReserve(ctx, waits, n, Never, nil)
	if err != nil {
		return nil, err
	}
	r.Result = Result{OK: true}
	return &r, nil
}

// waitReserve is Wait of l for at most maxWait. w is the waiter of a gate that l has refused, or
// nil.
func waitReserve(ctx context.Context, l WaitLimiter, n int, maxWait time.Duration, w *waiter) (r Reservation, err error) {
	m, ok := l.(waitMember)
	if !ok || !m.isItself(l) {
		if w != nil {
			var release func()
			ctx, release = w.Context(ctx)
			defer release()
		}
		began := time.Now()
		if err = waitAtMost(ctx, maxWait, func(ctx context.Context) error { return l.Wait(ctx, n) }); err == nil {
			r.owner, r.taken = asMember(l.(Limiter)), taken{n: n, when: began}
		}
		return r, err
	}
	if m.isShadow() {
		if err = ctx.Err(); err == nil {
			r = inside{}.Reserve(m, time.Now(), n, false)
		}
		return r, err
	}
	if r.taken, err = m.waitTaken(ctx, n, maxWait, w); err == nil {
		r.owner = m
	}
	return r, err
}

// waitAtMost calls wait, the Wait of a limiter of another package, with a context that ends after
// maxWait. An error that is due to this end, and not to that of ctx, becomes a refusal for lack of
// tokens.
func waitAtMost(ctx context.Context, maxWait time.Duration, wait func(ctx context.Context) error) error {
	end := time.Now().Add(maxWait) // Never is 292 years
	if deadline, ok := ctx.Deadline(); maxWait == Never || ok && !deadline.After(end) {
		return wait(ctx)
	}
	bounded, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	err := wait(bounded)
	limited, isLimited := errors.AsType[*LimitedError](err)
	switch {
	case isLimited && limited.Reason == PastDue:
		e := *limited
		e.Reason = NoTokens
		return &e
	case !isLimited && bounded.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		return newLimitedError(NoTokens, Result{})
	}
	return err
}

// Refund gives back n of the tokens, or all that are left if there are fewer. It does nothing if n
// is below 1, or if the reservation was refused.
//
// It gives back no token that has come back by itself: never more requests are allowed than the
// limit allows, however late Refund is called. A window gets back the tokens that it still counts.
// A bucket gets back what it would have more now if the tokens had not been taken, or less if that
// is not known. That is all of them while the bucket stays busy. It is nothing once the bucket
// could have become full without them. A bucket that was changed or held meanwhile gets nothing.
//
// A bucket never gets back the tokens that it has promised to later reservations of
// [TokenBucket.Reserve]. All other tokens of such a reservation come back if one Refund gives back
// all of them before the time to act, even if the bucket was changed or held meanwhile.
func (r *Reservation) Refund(n int) {
	if !r.claim() { // also if nothing was taken: the time is not needed then
		return
	}
	now := time.Now()
	r.refundAt(now, n)
	if r.deadline != nil {
		r.deadline.timer.Reset(r.deadline.at.Sub(now))
	}
}

// Settle charges the request for n tokens instead of those that it has reserved and not given back.
// If it has used fewer, the others are given back as by Refund. If it has used more, these become a
// debt: the limiter takes them at once, whether it has them or not, and refuses requests until the
// debt is paid. So in any span, what is used is at most what the limit allows, and what the
// requests in flight at its end have used beyond their estimates. A debt does not delay tokens that
// [TokenBucket.Reserve] has promised before.
//
// Settle works once: afterwards Settle and Refund do nothing. It does nothing for a reservation
// that was refused. A negative n counts as 0. Tokens of an earlier Refund count as given back.
//
// The debt of a bucket or of a fixed window is paid at the rate of the limit. It is forgotten by
// Forget, by a change to Off or Unlimited, and by a clock that goes back. A sliding window or log
// has no rate at which a debt can be paid: it counts what was used beyond Limit for one Window, as
// all other tokens, so that the bound holds for spans of one Window. A limiter of another package
// needs a method Charge: see [Limiter].
func (r *Reservation) Settle(n int) {
	if r.claim() {
		r.settleAt(time.Now(), n)
	}
}

// SettleAfter settles the reservation with n after d, unless it is settled before. Use it for
// requests whose end may never be known, such as a job in another process. A later SettleAfter
// replaces an earlier one.
func (r *Reservation) SettleAfter(d time.Duration, n int) {
	if !r.claim() {
		return
	}
	timer := time.AfterFunc(Never, func() { r.settleAt(time.Now(), n) })
	r.deadline = &deadline{timer, time.Now().Add(d)}
	timer.Reset(d) // now: a limiter of the user may call back
}

// claim reports whether the reservation is not settled yet, and stops its deadline.
func (r *Reservation) claim() bool {
	if r.deadline != nil {
		return r.deadline.timer.Stop()
	}
	return r.owner != nil
}

func (r *Reservation) settleAt(now time.Time, n int) {
	if n = max(n, 0); r.future != nil && n < r.taken.n {
		r.refundAt(now, r.taken.n-n)
		r.owner = nil
		return
	}
	owner := r.owner
	r.owner = nil // first: a limiter of the user may call back
	settle(owner, now, r.taken, n)
}

// settle charges a request that has taken back for n tokens in all.
func settle(g giver, now time.Time, back taken, n int) {
	switch g := g.(type) {
	case perRequest: // it is one request, however many tokens it has used
	case *Joint:
		for i, m := range g.members {
			var part taken
			if back.parts != nil {
				part = back.parts[i]
			}
			if !part.none {
				settle(m, now, part, n)
			}
		}
		g.queue.wakeFirst()
	default:
		if n > back.n {
			g.charge(now, back, n-back.n)
		} else if n < back.n {
			g.putBack(now, back, back.n-n)
		}
	}
}

func (r *Reservation) refundAt(now time.Time, n int) {
	if n = min(n, r.taken.n); n <= 0 || r.owner == nil {
		return
	}
	if r.future != nil && n == r.taken.n && r.cancelAt(now.Sub(r.bucket.epoch)) {
		return
	}
	r.future = nil // its end is not that of what is left
	r.taken = r.owner.putBack(now, r.taken, n)
}

// promise is a reservation of tokens that are not yet in the bucket.
type promise struct {
	end    int64  // the position at which the bucket is full, unless more tokens are taken
	serial uint64 // the number of the reservation, or 0 for none
}

// Reserve takes n tokens now, even if they are added to the bucket only later, up to maxWait from
// now. Later requests wait until those tokens are added. Reserve takes nothing if they would be
// added later than that, if a caller waits in the queue, or during a Hold.
func (b *TokenBucket) Reserve(n int, maxWait time.Duration) *Reservation {
	return b.reserveAt(time.Since(b.epoch), n, maxWait)
}

func (b *TokenBucket) reserveAt(at time.Duration, n int, maxWait time.Duration) *Reservation {
	r := &Reservation{future: &future{bucket: b}, taken: taken{n: n}}
	if b.queue.waitingTokens.Load() != 0 {
		r.Result = b.peekAt(at, 0, n)
		r.OK, r.taken.n = false, 0
		return r
	}
	b.restart(at, clock.ReadTolerance)
	b.mu.Lock()
	defer b.mu.Unlock()
	r.state, r.serial = b.state.Load(), b.serial+1
	r.taken = taken{n: n, at: at, refunded: b.refunded.Load(), limits: &r.state.limits}
	if r.state.reserve(r, at, max(maxWait, 0)); r.OK {
		r.owner = b
		b.serial++
	}
	return r
}

// reserve fills in the reservation. The caller holds the lock of the bucket, so the state is not
// replaced.
func (s *bucketState) reserve(r *Reservation, at, maxWait time.Duration) {
	n := r.taken.n
	if uint(n) > s.counted || s.counted == 0 {
		r.due, r.taken.n = at, 0
		s.predict(&r.Result, at, 0, n)
		return
	}
	at, now := s.position(at)
	held := s.hold.remaining(at)
	for {
		old := s.full.Load()
		start := s.start(max(old, s.hold.floor), now)
		r.end = start + s.cost*int64(n)
		delay := s.until(r.end-s.capacity, at)
		if delay == Never || delay > maxWait || held > 0 {
			s.describe(&r.Result, at, now, start)
			r.RetryAfter = delay
			if r.RetryAfter < Never {
				r.RetryAfter = max(r.RetryAfter-maxWait, held)
			}
			r.taken.n = 0
			return
		}
		if s.full.CompareAndSwap(old, r.end) {
			s.describe(&r.Result, at, now, r.end)
			r.OK = true
			r.Delay, r.due, r.taken.end = delay, at+delay, r.end
			if r.before = s.lastPromise; delay > 0 && r.end > s.lastPromise.end {
				s.lastPromise, s.promisedAt = r.promise, at
			}
			return
		}
	}
}

// cancelAt gives back all tokens before the time to act, except those that are promised to later
// reservations. It reports whether it did so.
func (r *Reservation) cancelAt(at time.Duration) bool {
	b := r.bucket
	b.mu.Lock()
	s, end, before := r.state, r.end, r.before
	late := at > r.due || r.cancelled
	r.cancelled = r.cancelled || !late
	if late || s.counted == 0 { // it took nothing
		b.mu.Unlock()
		return !late
	}
	for ; s.next != nil; s = s.next {
		end, before.end = s.convertToNext(end), s.convertToNext(before.end)
	}
	back := s.cost * int64(r.taken.use(r.taken.n))
	if r.serial != b.serial {
		back -= s.promisedAfter(end, at)
	}
	b.credit(s, back)
	if s.lastPromise.serial == r.serial {
		s.lastPromise = before
	}
	b.mu.Unlock()
	b.queue.wakeFirst()
	return true
}

// promisedAfter returns the units between end and the last promise. They are promised to later
// reservations, so a cancelled one must not give them back. The rule is that of
// golang.org/x/time/rate, with one exception: a reservation that is made later for an earlier time
// does not replace a promise that is still to be kept.
func (s *bucketState) promisedAfter(end int64, at time.Duration) int64 {
	return max(s.lastPromise.end-max(end, s.units(s.clamp(at))+s.capacity), 0)
}
