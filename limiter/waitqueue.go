package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/waiting"
)

// waitQueue lets callers wait for the tokens of a limiter in order of arrival.
//
// A waiter is charged when its turn comes, so a waiter that leaves owes nothing, and a change of
// the rate applies to all waiters. Only the first waiter sleeps until the limiter has tokens. Each
// waiter with a maximum wait has a timer of its own, so that it leaves on time whatever happens to
// the limiter.
type waitQueue struct {
	// waitingTokens is the number of tokens that all waiters want. It is above 0 exactly while
	// there is a waiter.
	waitingTokens atomic.Int64
	// slow is set while there is a waiter, and always if the limiter keeps statistics. While slow
	// is not set, Take may take tokens without looking at waiters or statistics.
	slow            atomic.Bool
	subscriberCount atomic.Int32

	maxWaiters int         // 0 means no bound
	maxTokens  int64       // bounds waitingTokens; 0 means no bound
	statistics *statistics // nil if the limiter has no name

	mu          sync.Mutex
	first, last *waiter
	length      int
	// received by the first waiter when a limiter behind this one has changed; often nil
	changed     wakeup
	subscribers []wakeup
}

// tokenSource has the methods of a limiter that its waitQueue uses.
type tokenSource interface {
	// acquire takes n tokens without regard to the queue, and returns what it took. If it refuses
	// with RetryAfter 0, the limiter calls wakeFirst when there may be tokens. If it refuses with
	// ResetAfter noWait, the caller must not wait.
	acquire(n int) (Result, taken)
	// predict returns the answer that acquire(n) would give if ahead more tokens were taken before
	// it. It takes nothing. RetryAfter is never too long.
	predict(ahead int64, n int) Result
}

// maxWaitingTokens bounds waitingTokens, so that neither waitingTokens nor a sum of several such
// numbers overflows. Beyond this bound, each request counts as one token.
const maxWaitingTokens = 1 << 60

// noWait is a special ResetAfter: the caller must not wait, although there is a RetryAfter.
const noWait time.Duration = -1

// waiter is a request that waits. It implements [waiting.Call], so a gate can interrupt it.
type waiter struct {
	waiting.Waiter
	n          int
	counted    int64   // the amount that the waiter adds to waitingTokens
	result     *result // nil until the wait is done
	prev, next *waiter
	gate       *gateWaiter // which contains the waiter, if it is a call of a gate
}

// result is how a wait has ended.
type result struct {
	taken taken
	err   error
}

// gateWaiter is a call of a gate that waits. It has room for its result. Other waiters have none,
// because there may be many.
type gateWaiter struct {
	waiter
	ownResult result

	// The answer of the limiter to the gate, which has asked before it waits, or the zero Result.
	// While no other caller waits, the queue does not ask again before the request has joined.
	refused Result
}

// mustAsk reports whether the limiter is asked before w joins a queue: no gate has asked it, or the
// answer was that there is no room for the key, and then it says whether the request may wait.
func (w *waiter) mustAsk() bool {
	return w == nil || w.gate.refused.RetryAfter == 0 || w.gate.refused.NoRoom
}

// keepStatistics makes the queue count its waiters by how their waits end. It is called before any
// wait.
func (q *waitQueue) keepStatistics(s *statistics) {
	q.statistics = s
	q.slow.Store(s != nil)
}

// wait takes n tokens, or waits for them for at most maxWait. It counts the request. w is the
// waiter of a gate that the limiter has refused, or nil.
func (q *waitQueue) wait(ctx context.Context, s tokenSource, n int, maxWait time.Duration, w *waiter) (taken, error) {
	if w.mustAsk() {
		if t, done, err := q.acquireNow(ctx, s, n, maxWait); done {
			return t, err
		}
	}
	return q.waitInQueue(ctx, s, n, maxWait, w)
}

// acquireNow takes n tokens if there is no waiter. done is false if the caller has to wait.
func (q *waitQueue) acquireNow(ctx context.Context, s tokenSource, n int, maxWait time.Duration) (t taken, done bool, err error) {
	if err := ctx.Err(); err != nil {
		return t, true, err
	}
	if q.waitingTokens.Load() != 0 && n > 0 {
		return t, false, nil
	}
	switch r, t := s.acquire(n); {
	case r.OK || isPeek(r, n):
		q.statistics.record(r, n)
		return t, true, nil
	case r.RetryAfter == Never, r.ResetAfter == noWait, maxWait <= 0:
		q.statistics.record(r, n)
		return t, true, q.statistics.withName(refusalOf(r, n))
	}
	return t, false, nil
}

// waitInQueue waits for n tokens behind the present waiters. w may be nil.
func (q *waitQueue) waitInQueue(ctx context.Context, s tokenSource, n int, maxWait time.Duration, w *waiter) (t taken, err error) {
	var began time.Time
	if q.statistics != nil {
		began = q.statistics.beginWait()
	}
	if w == nil {
		w = &waiter{}
		w.Init()
	}
	w.n, w.result = n, nil
	if err = q.join(ctx, s, w, maxWait); err == nil {
		t, err = q.waitTurn(ctx, s, w, maxWait)
	}
	if q.statistics != nil {
		err = q.statistics.endWait(began, n, err)
	}
	return t, err
}

// join appends a waiter, unless its wait cannot succeed.
func (q *waitQueue) join(ctx context.Context, s tokenSource, w *waiter, maxWait time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var r Result
	if ahead := q.waitingTokens.Load(); w.gate != nil && w.gate.refused.RetryAfter > 0 && ahead == 0 {
		r = w.gate.refused
	} else {
		r = s.predict(ahead, w.n)
	}
	if r.RetryAfter == Never {
		return refusalOf(r, w.n)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < r.RetryAfter {
		return newLimitedError(PastDue, r)
	}
	if r.RetryAfter > maxWait {
		return newLimitedError(NoTokens, r)
	}
	if q.maxWaiters > 0 || q.maxTokens > 0 {
		if err := q.fullFor(w.n, r); err != nil {
			return err
		}
	}
	if w.prev = q.last; q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.length++
	if w.counted = int64(w.n); w.counted > maxWaitingTokens-q.waitingTokens.Load() {
		w.counted = 1
	}
	q.waitingTokens.Add(w.counted)
	q.slow.Store(true)
	return nil
}

// fullFor returns an error if the queue has no room for a request for n tokens, whose predicted
// answer is r.
func (q *waitQueue) fullFor(n int, r Result) error {
	bound, most := "MaxWaiters", int64(q.maxWaiters)
	if most == 0 || int64(q.length) < most {
		bound, most = "Capacity", q.maxTokens
		if most == 0 || int64(n) <= most-q.waitingTokens.Load() {
			return nil
		}
	}
	e := newLimitedError(QueueFull, r)
	e.bound, e.most = bound, most
	return e
}

// waitTurn blocks until w has its tokens or leaves.
func (q *waitQueue) waitTurn(ctx context.Context, s tokenSource, w *waiter, maxWait time.Duration) (taken, error) {
	left := maxWait
	var began time.Time
	if maxWait != Never {
		began = time.Now()
	}
	for {
		retryAfter, changed, done := q.serveIfFirst(s, w)
		if done {
			return w.result.taken, w.result.err
		}
		cause := w.Block(ctx.Done(), changed, min(retryAfter, left))
		if maxWait != Never {
			left = maxWait - time.Since(began)
		}
		switch err := ctx.Err(); {
		case err == nil && cause != waiting.None:
			return q.leave(s, w, "", waiting.ErrInterrupted)
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return q.leave(s, w, "", err)
		case err != nil:
			return q.leave(s, w, PastDue, nil)
		case left <= 0:
			return q.leave(s, w, NoTokens, nil)
		}
	}
}

// serveIfFirst serves all waiters that can be served, if w is the first, and reports whether w is
// done. If w is still the first then, it returns when to try again: after a time, which is Never
// for other waiters, or when it receives from changed.
func (q *waitQueue) serveIfFirst(s tokenSource, w *waiter) (retryAfter time.Duration, changed wakeup, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first != w {
		return Never, nil, w.result != nil
	}
	retryAfter = q.serve(s)
	if q.first != w {
		if q.first != nil {
			q.first.Signal()
		}
		return Never, nil, w.result != nil
	}
	if retryAfter == 0 {
		retryAfter = Never
	}
	return retryAfter, q.changed, false
}

// serve serves waiters in order until one has to wait, and returns the RetryAfter of that one. It
// refuses waiters that can never be served.
func (q *waitQueue) serve(s tokenSource) (retryAfter time.Duration) {
	for q.first != nil {
		r, t := s.acquire(q.first.n)
		if !r.OK && r.RetryAfter < Never && r.ResetAfter != noWait {
			return r.RetryAfter
		}
		w := q.first
		if w.gate != nil {
			w.result = &w.gate.ownResult
		} else {
			w.result = new(result)
		}
		if *w.result = (result{taken: t}); !r.OK {
			w.result.err = refusalOf(r, w.n)
		}
		w.Signal()
		q.remove(w)
	}
	return 0
}

// leave removes w, and returns err or a refusal with the reason. If w is done, it is too late to
// leave, and leave returns the result of w. A waiter whose time is up gets the tokens that are
// there by then.
func (q *waitQueue) leave(s tokenSource, w *waiter, reason Reason, err error) (taken, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.first
	if err == nil && w.result == nil {
		q.serve(s)
	}
	if w.result == nil {
		q.remove(w)
	}
	if q.first != first && q.first != nil {
		q.first.Signal()
	}
	if w.result != nil {
		return w.result.taken, w.result.err
	}
	if err != nil {
		return taken{}, err
	}
	return taken{}, newLimitedError(reason, s.predict(q.waitingTokens.Load(), w.n))
}

// wakeFirst makes the first waiter try again, because the limiter may have more tokens than it had.
func (q *waitQueue) wakeFirst() {
	if q.waitingTokens.Load() == 0 && q.subscriberCount.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first != nil {
		q.first.Signal()
	}
	q.notify()
}

func (q *waitQueue) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.length--
	if q.waitingTokens.Add(-w.counted) > 0 {
		return
	}
	q.slow.Store(q.statistics != nil)
	if len(q.subscribers) > 0 {
		q.notify() // callers that were refused because of the waiters may now be allowed
	}
}
