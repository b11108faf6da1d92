package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// waitQueue lets callers wait for the tokens of a limiter in order of arrival.
//
// A waiter is charged when its turn comes, so a waiter that leaves owes nothing, and a change of
// the rate applies to all waiters. Only the first waiter sleeps until the limiter has tokens. Each
// waiter with a maximum wait has a timer of its own, so that it leaves on time whatever happens to
// the limiter. The queue starts no goroutine.
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
	timer       *time.Timer // of the first waiter
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

type waiter struct {
	n          int
	counted    int64         // the amount that the waiter adds to waitingTokens
	wake       chan struct{} // a signal to check again; has room for one
	done       bool
	taken      *taken // the result, once done
	err        error  // likewise
	prev, next *waiter
}

// keepStatistics makes the queue count its waiters by how their waits end. It is called before any
// wait.
func (q *waitQueue) keepStatistics(s *statistics) {
	q.statistics = s
	q.slow.Store(s != nil)
}

// wait takes n tokens, or waits for them for at most maxWait. It counts the request.
func (q *waitQueue) wait(ctx context.Context, s tokenSource, n int, maxWait time.Duration) (taken, error) {
	if t, done, err := q.acquireNow(ctx, s, n, maxWait); done {
		return t, err
	}
	return q.waitInQueue(ctx, s, n, maxWait)
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

// waitInQueue waits for n tokens behind the present waiters.
func (q *waitQueue) waitInQueue(ctx context.Context, s tokenSource, n int, maxWait time.Duration) (t taken, err error) {
	began := q.statistics.beginWait()
	w, err := q.join(ctx, s, n, maxWait)
	if err == nil {
		if err = q.waitTurn(ctx, s, w, maxWait); err == nil {
			t = *w.taken
		}
	}
	return t, q.statistics.endWait(began, n, err)
}

// join appends a waiter, unless its wait cannot succeed.
func (q *waitQueue) join(ctx context.Context, s tokenSource, n int, maxWait time.Duration) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := s.predict(q.waitingTokens.Load(), n)
	if r.RetryAfter == Never {
		return nil, refusalOf(r, n)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < r.RetryAfter {
		return nil, newLimitedError(PastDue, r)
	}
	if r.RetryAfter > maxWait {
		return nil, newLimitedError(WaitTooLong, r)
	}
	if err := q.fullFor(n, r); err != nil {
		return nil, err
	}
	w := &waiter{n: n, wake: make(chan struct{}, 1)}
	q.push(w)
	return w, nil
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
func (q *waitQueue) waitTurn(ctx context.Context, s tokenSource, w *waiter, maxWait time.Duration) error {
	var timeout <-chan time.Time
	if maxWait != Never {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		retry, changed := q.serveIfFirst(s, w)
		select {
		case <-w.wake:
		case <-retry:
		case <-changed:
		case <-timeout:
			return q.leave(s, w, WaitTooLong, nil)
		case <-ctx.Done():
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
				return q.leave(s, w, "", err)
			}
			return q.leave(s, w, PastDue, nil)
		}
		if q.isDone(w) {
			return w.err
		}
	}
}

// serveIfFirst serves all waiters that can be served, if w is the first. If w is still the first
// then, it returns the channels that say when to try again. For other waiters it returns nil
// channels.
func (q *waitQueue) serveIfFirst(s tokenSource, w *waiter) (<-chan time.Time, wakeup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first != w {
		return nil, nil
	}
	retryAfter := q.serve(s)
	if q.first != w {
		q.first.signal()
		return nil, nil
	}
	if retryAfter == 0 {
		return nil, q.changed
	}
	return q.startTimer(retryAfter), q.changed
}

// serve serves waiters in order until one has to wait, and returns the RetryAfter of that one. It
// refuses waiters that can never be served.
func (q *waitQueue) serve(s tokenSource) (retryAfter time.Duration) {
	for q.first != nil {
		r, t := s.acquire(q.first.n)
		if !r.OK && r.RetryAfter < Never && r.ResetAfter != noWait {
			return r.RetryAfter
		}
		if !r.OK {
			q.first.err = refusalOf(r, q.first.n)
		}
		q.first.done, q.first.taken = true, &t
		q.first.signal()
		q.remove(q.first)
	}
	return 0
}

// leave removes w, and returns err or a refusal with the reason. If w is done, it is too late to
// leave, and leave returns the result of w. A waiter whose time is up gets the tokens that are
// there by then.
func (q *waitQueue) leave(s tokenSource, w *waiter, reason Reason, err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.first
	if err == nil && !w.done {
		q.serve(s)
	}
	if !w.done {
		q.remove(w)
	}
	if q.first != first {
		q.first.signal()
	}
	if w.done {
		return w.err
	}
	if err != nil {
		return err
	}
	return newLimitedError(reason, s.predict(q.waitingTokens.Load(), w.n))
}

// wakeFirst makes the first waiter try again, because the limiter may have more tokens than it had.
func (q *waitQueue) wakeFirst() {
	if q.waitingTokens.Load() == 0 && q.subscriberCount.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first.signal()
	q.notify()
}

func (q *waitQueue) startTimer(d time.Duration) <-chan time.Time {
	if q.timer == nil {
		q.timer = time.NewTimer(d)
	} else {
		q.timer.Reset(d)
	}
	return q.timer.C
}

func (q *waitQueue) push(w *waiter) {
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
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil // the next waiter may be in another testing/synctest bubble
	}
	q.notify() // callers that were refused because of the waiters may now be allowed
}

func (q *waitQueue) isDone(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.done
}

func (w *waiter) signal() {
	if w == nil {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
