package fleet

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// scripted decides about terms of all kinds by one script.
type scriptBackend struct {
	namespace
	script *script
	limits []scopedLimit
	header [][]any // of each term: its kind and its numbers
}

func newScriptBackend(ns namespace, terms []scopedLimit) *scriptBackend {
	s := &scriptBackend{namespace: ns, limits: terms}
	var kinds []string
	for _, t := range terms {
		s.header = append(s.header, append([]any{t.scriptName()}, t.scriptArgs()...))
		kinds = append(kinds, t.scriptName())
	}
	s.script = newDecision(kinds...)
	return s
}

func (s *scriptBackend) take(ctx context.Context, k requestKey, n int, at time.Time) (limiter.Result, error) {
	return takeCombined(ctx, s, k, n, at)
}

func (s *scriptBackend) takeEach(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error) {
	return s.eval(ctx, k, request{n: n, at: at})
}

func (s *scriptBackend) refund(ctx context.Context, k requestKey, n int, age time.Duration, at time.Time) error {
	_, err := s.eval(ctx, k, request{n: -n, at: at, ages: []time.Duration{age}})
	return err
}

// replayed is how many ms a key lives longer that was written at a given time, for keys die by the
// server's clock.
const replayExtraMillis = int64(time.Hour / time.Millisecond)

// request is what a script is asked: to take n permits, to look for 0, or below that to give back
// those that were taken so long ago.
type request struct {
	n    int
	at   time.Time       // zero for the server's
	peek bool            // do not take them
	ages []time.Duration // of each term, or the first of all
}

// age is how long ago the permits were taken, as the script reads it.
func (r request) age() string {
	switch {
	case r.peek:
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

func (s *scriptBackend) eval(ctx context.Context, k requestKey, ask request) ([]limiter.Result, error) {
	keys := make([]string, 0, 2*len(s.limits))
	args := make([]any, 0, 4+6*len(s.limits))
	if ask.at.IsZero() {
		args = append(args, ask.n, "", 0)
	} else {
		args = append(args, ask.n, ask.at.UnixMicro(), replayExtraMillis)
	}
	args = append(args, ask.age())
	for i, t := range s.limits {
		keys = append(keys, t.redisKeys(s.keyBaseOf(k, t))...)
		args = append(args, s.header[i]...)
	}
	reply, err := s.link.eval(ctx, s.script, keys, args)
	if err = s.checkLength(reply, err, resultLength*len(s.limits)); err != nil {
		return nil, err
	}
	results := make([]limiter.Result, 0, len(s.limits))
	for ; len(reply) >= resultLength; reply = reply[resultLength:] {
		results = append(results, resultOf(reply))
	}
	return results, nil
}

// stateKeys are those of what is counted for each key by itself.
func (s *scriptBackend) stateKeys(k requestKey) (keys []string) {
	for _, t := range s.limits {
		if t.sharedBy == nil {
			keys = append(keys, t.redisKeys(s.keyBaseOf(k, t))[0])
		}
	}
	return keys
}

// baseOf is what the Redis keys of a term begin with.
func (s *scriptBackend) keyBaseOf(k requestKey, t scopedLimit) string {
	return s.keyBase(t.tagFor(k)) + t.keySuffix
}

// figures is how many numbers a script answers for each term.
const resultLength = 5

// single is the answer of the first term.
func resultOf(reply []int64) limiter.Result {
	r := limiter.Result{
		OK: reply[0] == 1, Limit: int(reply[1]), Remaining: int(reply[2]),
		RetryAfter: time.Duration(reply[3]) * time.Microsecond, ResetAfter: time.Duration(reply[4]) * time.Microsecond,
	}
	if reply[3] < 0 {
		r.RetryAfter = limiter.Never
	}
	return r
}
