package fleet

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// scripted decides about terms of all kinds by one script.
type scripted struct {
	namespace
	script *script
	terms  []term
	header [][]any // of each term: its kind and its numbers
}

func newScripted(ns namespace, terms []term) *scripted {
	s := &scripted{namespace: ns, terms: terms}
	var kinds []string
	for _, t := range terms {
		s.header = append(s.header, append([]any{t.kind()}, t.numbers()...))
		kinds = append(kinds, t.kind())
	}
	s.script = newDecision(kinds...)
	return s
}

func (s *scripted) decide(ctx context.Context, k target, n int, at time.Time) (limiter.Result, error) {
	return decided(ctx, s, k, n, at)
}

func (s *scripted) each(ctx context.Context, k target, n int, at time.Time) ([]limiter.Result, error) {
	return s.eval(ctx, k, request{n: n, at: at})
}

func (s *scripted) giveBack(ctx context.Context, k target, n int, age time.Duration, at time.Time) error {
	_, err := s.eval(ctx, k, request{n: -n, at: at, ages: []time.Duration{age}})
	return err
}

// replayed is how many ms a key lives longer that was written at a given time, for keys die by the
// server's clock.
const replayed = int64(time.Hour / time.Millisecond)

// request is what a script is asked: to take n permits, to look for 0, or below that to give back
// those that were taken so long ago.
type request struct {
	n    int
	at   time.Time       // zero for the server's
	look bool            // do not take them
	ages []time.Duration // of each term, or the first of all
}

// age is how long ago the permits were taken, as the script reads it.
func (r request) age() string {
	switch {
	case r.look:
		return "-1"
	case len(r.ages) == 0:
		return "0"
	}
	var text []string
	for _, age := range r.ages {
		text = append(text, strconv.FormatInt(age.Microseconds(), 10))
	}
	return strings.Join(text, ",")
}

func (s *scripted) eval(ctx context.Context, k target, ask request) ([]limiter.Result, error) {
	keys := make([]string, 0, 2*len(s.terms))
	args := make([]any, 0, 4+6*len(s.terms))
	if ask.at.IsZero() {
		args = append(args, ask.n, "", 0)
	} else {
		args = append(args, ask.n, ask.at.UnixMicro(), replayed)
	}
	args = append(args, ask.age())
	for i, t := range s.terms {
		keys = append(keys, t.keys(s.baseOf(k, t))...)
		args = append(args, s.header[i]...)
	}
	reply, err := s.link.eval(ctx, s.script, keys, args)
	if err = s.whole(reply, err, figures*len(s.terms)); err != nil {
		return nil, err
	}
	results := make([]limiter.Result, 0, len(s.terms))
	for ; len(reply) >= figures; reply = reply[figures:] {
		results = append(results, single(reply))
	}
	return results, nil
}

// stateKeys are those of what is counted for each key by itself.
func (s *scripted) stateKeys(k target) (keys []string) {
	for _, t := range s.terms {
		if t.by == nil {
			keys = append(keys, t.keys(s.baseOf(k, t))[0])
		}
	}
	return keys
}

// baseOf is what the Redis keys of a term begin with.
func (s *scripted) baseOf(k target, t term) string { return s.base(t.tag(k)) + t.suffix }

// figures is how many numbers a script answers for each term.
const figures = 5

// single is the answer of the first term.
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
