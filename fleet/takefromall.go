package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-go/weir/limiter"
)

// turn is what becomes of a request at one part.
type attempt struct {
	*limitGroup
	results   []limiter.Result
	decidedBy string // who decided: Redis or the policy
	began     time.Time
	err       error // why its server is unavailable
}

// ok reports whether the part admits the request.
func (t *attempt) ok() bool { return combine(t.results).OK }

// inTurn has the parts decide one after the other, all or none of them. It looks before it takes: what is refused anyway is taken from none.
// Where a part refuses or fails although it has been looked at, those before it get back what they have granted. The results are those
// of each limit, each with who decided about it.
func (l *Limiter) takeFromAll(ctx context.Context, k requestKey, n int, at time.Time) ([]Result, error) {
	turns := make([]attempt, len(l.groups))
	for i, p := range l.groups {
		turns[i].limitGroup = p
	}
	admits, err := l.peekAll(ctx, k, n, at, turns)
	for i := 0; err == nil && admits && i < len(turns); i++ {
		err = turns[i].take(ctx, l, k, n, at)
		if err != nil || n > 0 && !turns[i].ok() {
			l.refundAll(ctx, k, n, at, turns[:i])
			break
		}
	}
	if err != nil {
		return nil, err
	}
	results := make([]Result, l.count)
	for _, t := range turns {
		for i, term := range t.limits {
			results[term.index] = Result{Result: t.results[i], From: t.decidedBy}
		}
	}
	return results, nil
}

// joined is the answer of all limits together. The policy has decided if it has for one of them.
func combineResults(each []Result) Result {
	results, all := make([]limiter.Result, len(each)), Result{From: fromServer}
	for i, r := range each {
		if results[i] = r.Result; r.From == fromOutage {
			all.From = fromOutage
		}
	}
	all.Result = combine(results)
	return all
}

// lookAhead reports whether the parts behind the first would admit a request. Where one would not, it looks at the first too.
func (l *Limiter) peekAll(ctx context.Context, k requestKey, n int, at time.Time, turns []attempt) (admit bool, err error) {
	admit = true
	for i := 1; n > 0 && i < len(turns); i++ {
		if err := turns[i].peek(ctx, l, k, n, at); err != nil {
			return false, err
		}
		admit = admit && turns[i].ok()
	}
	if !admit {
		err = turns[0].peek(ctx, l, k, n, at)
	}
	return admit, err
}

// look asks what take would say.
func (t *attempt) peek(ctx context.Context, l *Limiter, k requestKey, n int, at time.Time) (err error) {
	t.decidedBy = fromServer
	t.results, err = t.script.eval(ctx, k, request{n: n, at: at, peek: true})
	if t.err = err; err == nil {
		return nil
	}
	if l.stats.countError(err); !t.outage.decidesAfter(err) {
		return err
	}
	t.decidedBy, t.results = fromOutage, t.outage.peek(k, n, l.untilRetry(err))
	return nil
}

// take has Redis decide, or the policy where Redis is unavailable, or was when it was looked at.
func (t *attempt) take(ctx context.Context, l *Limiter, k requestKey, n int, at time.Time) error {
	if t.err == nil {
		t.decidedBy, t.began = fromServer, time.Now()
		results, err := t.backend.takeEach(ctx, k, n, at)
		if err == nil {
			t.results = results
			return nil
		}
		if l.stats.countError(err); !t.outage.decidesAfter(err) {
			return err
		}
		t.err = err
	}
	t.decidedBy, t.results = fromOutage, t.outage.decide(k, n, l.untilRetry(t.err))
	return nil
}

// undo gives n permits back to the parts that have granted them. It asks even if the caller has given up.
func (l *Limiter) refundAll(ctx context.Context, k requestKey, n int, at time.Time, turns []attempt) {
	ctx = context.WithoutCancel(ctx)
	for i := range turns {
		t := &turns[i]
		if t.decidedBy == fromOutage {
			t.outage.refund(k, n, 0)
			continue
		}
		age := time.Since(t.began)
		if !at.IsZero() {
			age = 0
		}
		results, err := t.script.eval(ctx, k, request{n: -n, at: at, ages: t.refundAges(t.results, n, age)})
		if l.stats.countError(err); err == nil {
			t.results = results
		}
	}
	if len(turns) > 0 {
		l.refusalsOutdated(k, slices.ContainsFunc(turns, func(t attempt) bool { return t.limits[0].sharedBy != nil }))
	}
}

// returned makes known that there may be more permits than a request was told that came in the meantime: of the key, or of all keys where
// they were those of a Shared limit. The caller itself does not look again, for it knows.
func (l *Limiter) refusalsOutdated(k requestKey, shared bool) {
	l.denied.ForgetAll()
	if shared {
		l.waiting.wakeEachFirst(k.waiter)
	} else {
		l.waiting.wakeFirst(k.tag, k.waiter)
	}
}

// decidesAfter reports whether the policy decides where Redis has not, for that reason.
func (f fallback) decidesAfter(err error) bool {
	return errors.Is(err, ErrUnavailable) && f.policy != FailError
}
