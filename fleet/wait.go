package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Wait takes n permits of the key as soon as there are that many, and returns nil then.
//
// Callers of one process who wait for one key are served in order of arrival, and only the first of them asks Redis, when the last
// answer said that it is worth while. Between processes chance decides, and each asks a little later than it might, at
// random, so that they do not all come at once. Take does not stand in line.
//
// A context that is done gives its error. One whose deadline comes before the permits can be there gives a *limiter.LimitedError
// at once that matches context.DeadlineExceeded; what can never be had one whose RetryAfter is Never; a line that is full one
// that matches limiter.ErrQueueFull. While Redis is unavailable the policy decides: under FailClosed the wait goes on until Redis is back. Other
// errors are those of Take.
func (l *Limiter) Wait(ctx context.Context, key string, n int) error {
	return l.WaitAtMost(ctx, key, n, limiter.Never)
}

// WaitAtMost is Wait that gives up, with a *limiter.LimitedError, as soon as it is known that it would take longer than maxWait.
// A decision that is under way then is not cut short: it takes as long as that of Take may.
func (l *Limiter) WaitAtMost(ctx context.Context, key string, n int, maxWait time.Duration) error {
	outcome, err := l.wait(ctx, key, n, maxWait)
	if _, undecided := errors.AsType[*StoreError](err); !undecided && n != 0 {
		l.stats.countRequest(outcome, n)
	}
	return err
}

// wait is WaitAtMost that also says what has become of the request.
func (l *Limiter) wait(ctx context.Context, key string, n int, limit time.Duration) (outcome int, err error) {
	if err := ctx.Err(); err != nil {
		return cancelled, err
	}
	k := newRequestKey(key)
	p, ok := l.waiting.join(k.tag)
	if !ok {
		return refused, l.limited(limiter.QueueFull, l.link.timeout)
	}
	k.waiter = p
	defer l.waiting.leave(k.tag, p)
	l.stats.waiting.Add(1)
	defer l.stats.waiting.Add(-1)
	until := time.Now().Add(limit) // a limit of Never is 292 years
	if p.awaitTurn(ctx, limit) != nil {
		return l.waitEnded(ctx)
	}
	for outcome = allowed; ; outcome = waited {
		r, err := l.takeNow(ctx, k, n)
		switch {
		case err != nil:
			return cancelled, err
		case r.OK:
			return outcome, nil
		}
		slack, reason := pointlessWait(ctx, r.RetryAfter, time.Until(until))
		if reason != "" {
			return refused, l.limited(reason, r.RetryAfter)
		}
		if p.sleep(ctx, r.RetryAfter+jitter(r.RetryAfter, slack)) != nil {
			return l.waitEnded(ctx)
		}
	}
}

// gaveUp is what becomes of a wait that the context or the limit has ended.
func (l *Limiter) waitEnded(ctx context.Context) (int, error) {
	switch err := ctx.Err(); {
	case err == nil:
		return refused, l.limited(limiter.WaitTooLong, l.link.timeout)
	case errors.Is(err, context.DeadlineExceeded):
		return refused, l.limited(limiter.PastDue, l.link.timeout)
	default:
		return cancelled, err
	}
}

// hopeless is why waiting for retry is of no use, or nothing, and how much time there is beyond that.
func pointlessWait(ctx context.Context, retry, limit time.Duration) (slack time.Duration, reason limiter.Reason) {
	if retry == limiter.Never {
		return 0, limiter.OverLimit
	}
	slack = limit - retry
	if deadline, ok := ctx.Deadline(); ok {
		slack = min(slack, time.Until(deadline)-retry)
		if time.Until(deadline) < retry {
			return 0, limiter.PastDue
		}
	}
	if limit < retry {
		return 0, limiter.WaitTooLong
	}
	return slack, ""
}

// limited is the error for a request that may succeed after d.
func (l *Limiter) limited(reason limiter.Reason, d time.Duration) error {
	e := &limiter.LimitedError{Name: l.name, Reason: reason, Limit: l.limit}
	if d != limiter.Never {
		e.Until = time.Now().Add(d)
	}
	return e
}

// jitter is how much longer than d to wait: at random, up to a tenth of it or a millisecond, and to a half of what
// there is time for.
func jitter(d, slack time.Duration) time.Duration {
	return rand.N(max(min(max(d/10, time.Millisecond), time.Second, slack/2), 1))
}
