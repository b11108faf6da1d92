package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// All is several limits on each key: so many a second, so many an hour. A request is admitted by all of them, or refused and taken
// from none, in one round trip.
//
// The result is that of all together: the least Limit and Remaining, the largest RetryAfter and ResetAfter. All methods are safe
// for concurrent use, and block: see Take.
type All struct {
	*core
	all *scripted
}

// maxLimits bounds the limits of one All.
const maxLimits = 10

// NewAll makes a limiter of several limits. What was taken of each is known by its place among them, so keep their order. It panics
// as [NewTokenBucket] does, and unless there are 1 to 10 limits, none of them nil.
func NewAll(l *Link, name string, c Config, limits ...Limit) *All {
	if len(limits) < 1 || len(limits) > maxLimits {
		panic(fmt.Errorf("fleet: the limits are %d, must lie between 1 and %d", len(limits), maxLimits))
	}
	for _, limit := range limits {
		if limit == nil {
			panic(errors.New("fleet: a limit is nil"))
		}
	}
	s := newScripted(l, name, c, limits...)
	return &All{core: s.core, all: s}
}

// TakeEach is Take that gives the answers of each limit, in their order: which of them refused, and how the others stand. Where Redis
// is away there is only the policy's, in the first place. Nothing has been taken unless all are OK.
func (a *All) TakeEach(ctx context.Context, key string, n int) ([]Result, error) {
	reply, err := a.all.eval(ctx, key, max(n, 0), time.Time{})
	if err != nil {
		a.book.fault(err)
		r, err := a.withoutRedis(key, n, err)
		a.book.count(r, err, n)
		return []Result{r}, err
	}
	each := make([]Result, 0, len(a.all.rules))
	all := Result{Result: join(reply)}
	for ; len(reply) >= figures; reply = reply[figures:] {
		each = append(each, Result{Result: negative(single(reply), n)})
	}
	all.Result = negative(all.Result, n)
	a.book.count(all, nil, n)
	return each, nil
}
