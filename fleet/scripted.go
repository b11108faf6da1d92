package fleet

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-go/weir/limiter"
)

// scripted decides about rules of all kinds by one script.
type scripted struct {
	namespace
	script *script
	rules  []rule
	header [][]any // of each rule: its kind and its numbers
}

func newScripted(ns namespace, rules []rule) *scripted {
	s := &scripted{namespace: ns, rules: rules}
	var kinds []string
	for _, r := range rules {
		s.header = append(s.header, append([]any{r.kind()}, r.numbers()...))
		kinds = append(kinds, r.kind())
	}
	s.script = newDecision(kinds...)
	return s
}

func (s *scripted) decide(ctx context.Context, tag string, n int, at time.Time) (limiter.Result, error) {
	return decided(ctx, s, tag, n, at)
}

func (s *scripted) each(ctx context.Context, tag string, n int, at time.Time) ([]limiter.Result, error) {
	reply, err := s.eval(ctx, tag, request{n: n, at: at})
	if err != nil {
		return nil, err
	}
	results := make([]limiter.Result, 0, len(s.rules))
	for ; len(reply) >= figures; reply = reply[figures:] {
		results = append(results, single(reply))
	}
	return results, nil
}

func (s *scripted) giveBack(ctx context.Context, tag string, n int, age time.Duration, at time.Time) error {
	_, err := s.eval(ctx, tag, request{n: -n, at: at, age: age})
	return err
}

// replayed is how many ms a key lives longer that was written at a given time, for keys die by the
// server's clock.
const replayed = int64(time.Hour / time.Millisecond)

// request is what a script is asked: to take n permits, to look for 0, or below that to give back
// those that were taken so long ago.
type request struct {
	n   int
	at  time.Time // zero for the server's
	age time.Duration
}

func (s *scripted) eval(ctx context.Context, tag string, ask request) ([]int64, error) {
	keys := make([]string, 0, 2*len(s.rules))
	args := make([]any, 0, 4+6*len(s.rules))
	if ask.at.IsZero() {
		args = append(args, ask.n, "", 0)
	} else {
		args = append(args, ask.n, ask.at.UnixMicro(), replayed)
	}
	args = append(args, ask.age.Microseconds())
	for i, r := range s.rules {
		keys = append(keys, r.keys(s.baseOf(tag, i))...)
		args = append(args, s.header[i]...)
	}
	reply, err := s.link.eval(ctx, s.script, keys, args)
	return reply, s.whole(reply, err, figures*len(s.rules))
}

func (s *scripted) stateKeys(tag string) []string {
	keys := make([]string, 0, len(s.rules))
	for i, r := range s.rules {
		keys = append(keys, r.keys(s.baseOf(tag, i))[0])
	}
	return keys
}

// baseOf is what the Redis keys of a user begin with, for the rule of that number.
func (s *scripted) baseOf(tag string, rule int) string {
	base := s.base(tag)
	if len(s.rules) > 1 {
		base += ":" + strconv.Itoa(rule)
	}
	return base
}

// figures is how many numbers a script answers for each rule.
const figures = 5

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
