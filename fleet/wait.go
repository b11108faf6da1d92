package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Wait takes n tokens of the key as soon as it can, and then returns nil.
//
// Callers of one process that wait for the same key are served in order of arrival. Only the first
// of them asks Redis, after the RetryAfter of the last refusal and a small random delay, so that
// several processes do not ask at the same time. The order between processes is random. Take does
// not join the queue.
//
// Wait returns a *limiter.LimitedError at once if waiting is pointless:
//
//   - The deadline of ctx comes before the tokens: the error matches context.DeadlineExceeded.
//   - n is more than the limit: the error's RetryAfter is limiter.Never.
//   - MaxWaiters callers are waiting: the error matches limiter.ErrQueueFull.
//
// If ctx ends while waiting, Wait returns its error. While Redis is unavailable the policy decides;
// with FailClosed, Wait goes on until Redis is back. Other errors are those of Take.
func (l *Limiter) Wait(ctx context.Context, key string, n int) error {
	return l.WaitAtMost(ctx, key, n, limiter.Never)
}

// WaitAtMost is like Wait, but gives up with a *limiter.LimitedError as soon as it is known that
// the wait would exceed maxWait. maxWait does not interrupt a request to Redis, which may last as
// long as one of Take, unless ctx ends.
func (l *Limiter) WaitAtMost(ctx context.Context, key string, n int, maxWait time.Duration) error {
	_, err := l.waitFor(ctx, key, n, maxWait)
	return err
}

func (l *Limiter) waitFor(ctx context.Context, key string, n int, maxWait time.Duration) (origin, error) {
	outcome, from, err := l.wait(ctx, key, n, maxWait)
	if _, undecided := errors.AsType[*StoreError](err); !undecided && n != 0 {
		l.stats.countRequest(outcome, n)
		if outcome == refused {
			l.countRefusedKey(key)
		}
	}
	return from, err
}

// wait does the work of WaitAtMost. It also returns the outcome to count.
func (l *Limiter) wait(ctx context.Context, key string, n int, maxWait time.Duration) (outcome int, from origin, err error) {
	if err := ctx.Err(); err != nil {
		return cancelled, from, err
	}
	k := newRequestKey(key)
	w, ok := l.waiting.join(k.tag)
	if !ok {
		l.stats.queueFull.Add(1)
		return refused, from, fmt.Errorf("%w: MaxWaiters is %d", l.limitedError(limiter.QueueFull, l.link.timeout), l.waiting.max)
	}
	k.waiter = w
	defer l.waiting.leave(k.tag, w)
	l.stats.waiting.Add(1)
	defer l.stats.waiting.Add(-1)
	until := time.Now().Add(maxWait) // limiter.Never is 292 years
	if w.awaitTurn(ctx, maxWait) != nil {
		outcome, err = l.waitEnded(ctx)
		return outcome, from, err
	}
	for outcome = allowed; ; outcome = waited {
		r, from, err := l.takeNow(ctx, k, n)
		switch {
		case err != nil:
			return cancelled, from, err
		case r.OK:
			return outcome, from, nil
		}
		slack, reason := pointlessWait(ctx, r.RetryAfter, time.Until(until))
		if reason != "" {
			if r.NoRoom && reason != limiter.OverLimit {
				reason = limiter.NoRoom
			}
			return refused, from, l.limitedError(reason, r.RetryAfter)
		}
		if w.sleep(ctx, r.RetryAfter+jitter(r.RetryAfter, slack)) != nil {
			outcome, err = l.waitEnded(ctx)
			return outcome, from, err
		}
	}
}

// waitEnded returns the outcome and the error of a wait that ctx or maxWait has ended.
func (l *Limiter) waitEnded(ctx context.Context) (int, error) {
	switch err := ctx.Err(); {
	case err == nil:
		return refused, l.limitedError(limiter.WaitTooLong, l.link.timeout)
	case errors.Is(err, context.DeadlineExceeded):
		return refused, l.limitedError(limiter.PastDue, l.link.timeout)
	default:
		return cancelled, err
	}
}

// pointlessWait returns why it is pointless to wait for retry, if it is. Otherwise it returns how
// much time is left after that.
func pointlessWait(ctx context.Context, retry, maxWait time.Duration) (slack time.Duration, reason limiter.Reason) {
	if retry == limiter.Never {
		return 0, limiter.OverLimit
	}
	slack = maxWait - retry
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left < retry {
			return 0, limiter.PastDue
		}
		slack = min(slack, left-retry)
	}
	if maxWait < retry {
		return 0, limiter.WaitTooLong
	}
	return slack, ""
}

// limitedError returns the error for a request that may succeed after d.
func (l *Limiter) limitedError(reason limiter.Reason, d time.Duration) error {
	e := &limiter.LimitedError{Name: l.name, Reason: reason, Limit: l.maxTake}
	if reason == limiter.NoRoom {
		e.MaxKeys = l.maxKeys
	}
	if d != limiter.Never {
		e.Until = time.Now().Add(d)
	}
	return e
}

// jitter returns a random delay to add to a wait of d: up to a tenth of d, but at least 1ms and at
// most 1s, and at most half of the slack.
func jitter(d, slack time.Duration) time.Duration {
	return rand.N(max(min(max(d/10, time.Millisecond), time.Second, slack/2), 1))
}
