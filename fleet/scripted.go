package fleet

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/weir-go/weir/limiter"
)

// scripted decides about rules by one script.
type scripted struct {
	core   *core
	script *script
	rules  []rule
	header [][]any // of each rule: its kind and its numbers
}

// newScripted makes a limiter of limits.
func newScripted(l *Link, name string, c Config, limits ...Limit) *scripted {
	k := newCore(l, name, c, limits...)
	s := &scripted{core: k}
	var kinds []string
	k.limit = math.MaxInt
	for _, limit := range limits {
		r := limit.rule()
		s.rules = append(s.rules, r)
		s.header = append(s.header, append([]any{r.kind()}, r.numbers()...))
		k.limit = min(k.limit, r.most())
		kinds = append(kinds, r.kind())
	}
	s.script = newDecision(kinds...)
	k.away = newFallback(c, s.rules)
	k.store = s
	return s
}

func (s *scripted) decide(ctx context.Context, key string, n int, at time.Time) (limiter.Result, error) {
	reply, err := s.eval(ctx, key, n, at)
	if err != nil {
		return limiter.Result{}, err
	}
	return join(reply), nil
}

// replayed is how many ms a key lives longer that was written at a given time, for keys die by the server's clock.
const replayed = int64(time.Hour / time.Millisecond)

func (s *scripted) eval(ctx context.Context, key string, n int, at time.Time) ([]int64, error) {
	keys := make([]string, 0, 2*len(s.rules))
	args := make([]any, 0, 3+6*len(s.rules))
	if at.IsZero() {
		args = append(args, n, "", 0)
	} else {
		args = append(args, n, at.UnixMicro(), replayed)
	}
	for i, r := range s.rules {
		keys = append(keys, r.keys(s.base(key, i))...)
		args = append(args, s.header[i]...)
	}
	return s.core.link.eval(ctx, s.script, keys, args)
}

func (s *scripted) stateKeys(key string) []string {
	keys := make([]string, 0, len(s.rules))
	for i, r := range s.rules {
		keys = append(keys, r.keys(s.base(key, i))[0])
	}
	return keys
}

// base is what the Redis keys of a user begin with, for the rule of that number.
func (s *scripted) base(key string, rule int) string {
	base := s.core.base(key)
	if len(s.rules) > 1 {
		base += ":" + strconv.Itoa(rule)
	}
	return base
}

// figures is how many numbers a script answers for each rule.
const figures = 5

// join makes one answer of those of all rules.
func join(reply []int64) limiter.Result {
	all := limiter.Result{OK: true, Limit: math.MaxInt, Remaining: math.MaxInt}
	for ; len(reply) >= figures; reply = reply[figures:] {
		r := single(reply)
		all.OK = all.OK && r.OK
		all.Limit = min(all.Limit, r.Limit)
		all.Remaining = min(all.Remaining, r.Remaining)
		all.RetryAfter = max(all.RetryAfter, r.RetryAfter)
		all.ResetAfter = max(all.ResetAfter, r.ResetAfter)
	}
	return all
}

// single is the answer of the first rule.
func single(reply []int64) limiter.Result {
	r := limiter.Result{
		OK: reply[0] == 1, Limit: int(reply[1]), Remaining: int(reply[2]),
		RetryAfter: time.Duration(reply[3]) * time.Microsecond, ResetAfter: time.Duration(reply[4]) * time.Microsecond,
	}
	if reply[3] < 0 {
		r.RetryAfter = limiter.Never
	}
	return r
}
