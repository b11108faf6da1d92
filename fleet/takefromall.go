package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-go/weir/fleet/internal/detach"
	"github.com/weir-go/weir/limiter"
)

// attempt is one request at one group of limits, with what is known of its decision so far.
type attempt struct {
	*limitGroup
	results   []limiter.Result
	decidedBy string // Redis or the policy
	began     time.Time
	err       error // why the server is unavailable
}

func (a *attempt) ok() bool {
	return !slices.ContainsFunc(a.results, func(r limiter.Result) bool { return !r.OK })
}

// takeFromAll takes n tokens from all groups or from none, and returns the result of each limit in
// the order of the config.
//
// It peeks before it takes, so that a request that some group would refuse takes from none. If a
// group refuses or fails after that, the groups before it get their tokens back.
//
// A caller whose ctx ends leaves. If there are several groups, a goroutine then ends what was
// begun, so that the tokens of the groups before are given back.
func (l *Limiter) takeFromAll(ctx context.Context, k requestKey, n int, at time.Time) ([]Result, error) {
	if len(l.groups) == 1 {
		return l.takeFromGroups(ctx, ctx, k, n, at)
	}
	return detach.Do(ctx, func() ([]Result, error) {
		return l.takeFromGroups(ctx, context.WithoutCancel(ctx), k, n, at)
	})
}

// takeFromGroups does the work of takeFromAll. It takes and refunds with the context toEnd.
func (l *Limiter) takeFromGroups(ctx, toEnd context.Context, k requestKey, n int, at time.Time) ([]Result, error) {
	attempts := make([]attempt, len(l.groups))
	for i, g := range l.groups {
		attempts[i].limitGroup = g
	}
	allowed, err := l.peekAll(ctx, k, n, at, attempts)
	for i := 0; err == nil && allowed && i < len(attempts); i++ {
		taken := i
		if err = attempts[i].take(toEnd, l, k, n, at); err == nil && len(attempts) > 1 {
			if err = ctx.Err(); err != nil && attempts[i].ok() {
				taken++
			}
		}
		if err != nil || n > 0 && !attempts[i].ok() {
			l.refundAttempts(toEnd, k, n, at, attempts[:taken])
			break
		}
	}
	if err != nil {
		return nil, err
	}
	results := make([]Result, l.limitCount)
	for _, a := range attempts {
		for i, limit := range a.limits {
			results[limit.index] = Result{Result: a.results[i], From: a.decidedBy}
		}
	}
	return results, nil
}

// peekAll reports whether all groups after the first one would allow a request. If one of them
// would not, peekAll peeks at the first group too, so that every attempt has results.
func (l *Limiter) peekAll(ctx context.Context, k requestKey, n int, at time.Time, attempts []attempt) (allowed bool, err error) {
	allowed = true
	for i := 1; n > 0 && i < len(attempts); i++ {
		if err := attempts[i].peek(ctx, l, k, n, at); err != nil {
			return false, err
		}
		allowed = allowed && attempts[i].ok()
	}
	if !allowed {
		err = attempts[0].peek(ctx, l, k, n, at)
	}
	return allowed, err
}

// peek returns the results that take would have.
func (a *attempt) peek(ctx context.Context, l *Limiter, k requestKey, n int, at time.Time) error {
	results, err := a.script.eval(ctx, k, request{n: n, at: at, peek: true})
	if a.decidedBy, a.results = fromServer, results; err == nil {
		return nil
	}
	if a.err = err; !l.policyDecides(err) {
		return err
	}
	a.decidedBy, a.results = fromOutage, a.outage.peek(k, n, l.untilRetry(err))
	return nil
}

// take takes tokens from Redis, or from the policy if Redis is unavailable now or was so during
// peek.
func (a *attempt) take(ctx context.Context, l *Limiter, k requestKey, n int, at time.Time) error {
	if a.err == nil {
		a.began = time.Now()
		results, err := a.backend.take(ctx, k, n, at)
		if a.decidedBy, a.results = fromServer, results; err == nil {
			return nil
		}
		if a.err = err; !l.policyDecides(err) {
			return err
		}
	}
	a.decidedBy, a.results = fromOutage, a.outage.take(k, n, l.untilRetry(a.err))
	return nil
}

// policyDecides counts an error of Redis, and reports whether the policy decides instead of Redis.
func (l *Limiter) policyDecides(err error) bool {
	l.stats.countError(err)
	return errors.Is(err, ErrUnavailable) && l.groups[0].outage.policy != FailError
}

// refundAttempts gives n tokens back to groups that have granted them.
func (l *Limiter) refundAttempts(ctx context.Context, k requestKey, n int, at time.Time, attempts []attempt) {
	if len(attempts) == 0 {
		return
	}
	for i := range attempts {
		a := &attempts[i]
		if a.decidedBy == fromOutage {
			a.outage.refund(k, n, 0)
			continue
		}
		age := time.Since(a.began)
		if !at.IsZero() {
			age = 0
		}
		results, err := a.script.eval(ctx, k, request{n: -n, at: at, ages: a.refundAges(a.results, n, age)})
		if l.stats.countError(err); err == nil {
			a.results = results
		}
	}
	l.denied.ForgetAll() // other requests may have been refused for these tokens
	l.wake(k, slices.ContainsFunc(attempts, func(a attempt) bool { return a.limits[0].sharedBy != nil }))
}

// wake makes waiters try again: those of the key, or those of all keys if tokens of a Shared limit
// have returned. The caller's own waiter is not woken.
func (l *Limiter) wake(k requestKey, allKeys bool) {
	if allKeys {
		l.waiting.wakeEachFirst(k.waiter)
	} else {
		l.waiting.wakeFirst(k.tag, k.waiter)
	}
}
