package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-go/weir/limiter"
)

// turn is what becomes of a request at one part.
type turn struct {
	*part
	results []limiter.Result
	from    string // who decided: Redis or the policy
	began   time.Time
	err     error // why its server is unavailable
}

// ok reports whether the part admits the request.
func (t *turn) ok() bool { return join(t.results).OK }

// inTurn has the parts decide one after the other, all or none of them. It looks before it takes: what is refused anyway is taken from none.
// Where a part refuses or fails although it has been looked at, those before it get back what they have granted. The results are those
// of each limit, each with who decided about it.
func (l *Limiter) inTurn(ctx context.Context, k target, n int, at time.Time) ([]Result, error) {
	turns := make([]turn, len(l.parts))
	for i, p := range l.parts {
		turns[i].part = p
	}
	admits, err := l.lookAhead(ctx, k, n, at, turns)
	for i := 0; err == nil && admits && i < len(turns); i++ {
		err = turns[i].take(ctx, l, k, n, at)
		if err != nil || n > 0 && !turns[i].ok() {
			l.undo(ctx, k, n, at, turns[:i])
			break
		}
	}
	if err != nil {
		return nil, err
	}
	results := make([]Result, l.limits)
	for _, t := range turns {
		for i, term := range t.terms {
			results[term.place] = Result{Result: t.results[i], From: t.from}
		}
	}
	return results, nil
}

// joined is the answer of all limits together. The policy has decided if it has for one of them.
func joined(each []Result) Result {
	results, all := make([]limiter.Result, len(each)), Result{From: fromServer}
	for i, r := range each {
		if results[i] = r.Result; r.From == fromOutage {
			all.From = fromOutage
		}
	}
	all.Result = join(results)
	return all
}

// lookAhead reports whether the parts behind the first would admit a request. Where one would not, it looks at the first too.
func (l *Limiter) lookAhead(ctx context.Context, k target, n int, at time.Time, turns []turn) (admit bool, err error) {
	admit = true
	for i := 1; n > 0 && i < len(turns); i++ {
		if err := turns[i].look(ctx, l, k, n, at); err != nil {
			return false, err
		}
		admit = admit && turns[i].ok()
	}
	if !admit {
		err = turns[0].look(ctx, l, k, n, at)
	}
	return admit, err
}

// look asks what take would say.
func (t *turn) look(ctx context.Context, l *Limiter, k target, n int, at time.Time) (err error) {
	t.from = fromServer
	t.results, err = t.script.eval(ctx, k, request{n: n, at: at, look: true})
	if t.err = err; err == nil {
		return nil
	}
	if l.book.fault(err); !t.outage.decidesAfter(err) {
		return err
	}
	t.from, t.results = fromOutage, t.outage.look(k, n, l.again(err))
	return nil
}

// take has Redis decide, or the policy where Redis is unavailable, or was when it was looked at.
func (t *turn) take(ctx context.Context, l *Limiter, k target, n int, at time.Time) error {
	if t.err == nil {
		t.from, t.began = fromServer, time.Now()
		results, err := t.store.each(ctx, k, n, at)
		if err == nil {
			t.results = results
			return nil
		}
		if l.book.fault(err); !t.outage.decidesAfter(err) {
			return err
		}
		t.err = err
	}
	t.from, t.results = fromOutage, t.outage.each(k, n, l.again(t.err))
	return nil
}

// undo gives n permits back to the parts that have granted them. It asks even if the caller has given up.
func (l *Limiter) undo(ctx context.Context, k target, n int, at time.Time, turns []turn) {
	ctx = context.WithoutCancel(ctx)
	for i := range turns {
		t := &turns[i]
		if t.from == fromOutage {
			t.outage.refund(k, n, 0)
			continue
		}
		age := time.Since(t.began)
		if !at.IsZero() {
			age = 0
		}
		results, err := t.script.eval(ctx, k, request{n: -n, at: at, ages: t.ages(t.results, n, age)})
		if l.book.fault(err); err == nil {
			t.results = results
		}
	}
	if len(turns) > 0 {
		l.returned(k, slices.ContainsFunc(turns, func(t turn) bool { return t.terms[0].by != nil }))
	}
}

// returned makes known that there may be more permits than a request was told that came in the meantime: of the key, or of all keys where
// they were those of a Shared limit. The caller itself does not look again, for it knows.
func (l *Limiter) returned(k target, shared bool) {
	l.denied.ForgetAll()
	if shared {
		l.lines.pokeAll(k.waiter)
	} else {
		l.lines.poke(k.tag, k.waiter)
	}
}

// decidesAfter reports whether the policy decides where Redis has not, for that reason.
func (f fallback) decidesAfter(err error) bool {
	return errors.Is(err, ErrUnavailable) && f.policy != FailError
}
