// Package limitertest checks that a limiter keeps the promises of limiter.Limiter and limiter.TimedLimiter.
//
// The limiters of this library are run through it; run yours as well:
//
//	func TestMine(t *testing.T) {
//		limitertest.Run(t, limitertest.Subject{
//			New:   func(t0 time.Time) limiter.TimedLimiter { return NewMine(t0) },
//			Limit: 5,
//			Most:  func(d time.Duration) int { return 5 + int(d/time.Second) },
//		})
//	}
package limitertest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Subject is a limiter to be checked, with the promises that it makes.
type Subject struct {
	// New makes a limiter that is driven by given times, from t0 on, with everything to be had. Must be given.
	New func(t0 time.Time) limiter.TimedLimiter
	// Limit is the most permits that can be taken at once, at least 1. Must be given.
	Limit int
	// Most is the most permits that may be admitted within a span of time, both ends included. Must be given.
	Most func(span time.Duration) int
	// Exact says that the RetryAfter of a refusal is minimal. Default: it may be longer.
	Exact bool
	// Step is about how long a permit takes to come back; random histories move in
	// steps of this order. Default: a second.
	Step time.Duration
}

// Run checks the subject, in several subtests.
func Run(t *testing.T, s Subject) {
	t.Helper()
	if s.Step == 0 {
		s.Step = time.Second
	}
	for name, check := range map[string]func(*run){
		"starts full": (*run).startsFull, "peeks change nothing": (*run).peeks, "nonsense is refused": (*run).nonsense,
		"refusals change nothing": (*run).refusals, "what remains can be had": (*run).remaining,
		"RetryAfter holds": (*run).retry, "ResetAfter holds": (*run).reset, "refunds": (*run).refunds,
		"never admits too many": (*run).bound, "times that go back": (*run).stale, "many at once": (*run).together,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				check(&run{TB: t, Subject: s, l: s.New(origin), random: rand.New(rand.NewPCG(seed, 0))})
			}
		})
	}
}

// origin is where the histories begin. It lies on the grid of all common windows.
var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// run is one history of a fresh limiter.
type run struct {
	testing.TB
	Subject
	l        limiter.TimedLimiter
	random   *rand.Rand
	at       time.Duration
	admitted []admission
}

type admission struct {
	at time.Duration
	n  int
}

// take asks for n permits at the present time of the history, and records them.
func (r *run) take(n int) limiter.Result {
	result := r.l.TakeAt(origin.Add(r.at), n)
	if result.OK && n > 0 {
		r.admitted = append(r.admitted, admission{r.at, n})
	}
	return result
}

// pass lets a random time go by, now and then a long one.
func (r *run) pass() {
	switch step := int64(r.Step); r.random.IntN(8) {
	case 0:
	case 1:
		r.at += time.Duration(r.random.Int64N(step * int64(r.Limit+2)))
	default:
		r.at += time.Duration(r.random.Int64N(step))
	}
}

// some is a random number of permits that can be had at once.
func (r *run) some() int { return 1 + r.random.IntN(r.Limit) }

func (r *run) must(ok bool, format string, args ...any) {
	r.Helper()
	if !ok {
		r.Fatalf("at %s: %s", r.at, fmt.Sprintf(format, args...))
	}
}

func (r *run) startsFull() {
	result := r.take(0)
	r.must(result == limiter.Result{OK: true, Limit: r.Limit, Remaining: r.Limit}, "a fresh limiter answers %+v", result)
	r.must(r.take(r.Limit).OK, "a fresh limiter refuses %d", r.Limit)
	result = r.take(1)
	r.must(!result.OK && result.Remaining == 0, "an empty limiter answers %+v", result)
}

func (r *run) peeks() {
	for range 200 {
		r.pass()
		before := r.take(0)
		r.must(before.OK && before.RetryAfter == 0, "a peek answers %+v", before)
		r.must(r.take(0) == before, "a peek has changed something")
		r.take(r.some())
	}
}

func (r *run) nonsense() {
	for range 50 {
		r.pass()
		before := r.take(0)
		for _, n := range []int{-1, -1 << 31, r.Limit + 1, 1<<31 - 1} {
			result := r.take(n)
			r.must(!result.OK && result.RetryAfter == limiter.Never, "Take(%d) answers %+v", n, result)
		}
		r.must(r.take(0) == before, "a nonsensical request has changed something")
		r.take(r.some())
	}
}

func (r *run) refusals() {
	for range 200 {
		r.pass()
		before := r.take(0)
		if !r.take(r.some()).OK {
			r.must(r.take(0) == before, "a refusal has changed something")
		}
	}
}

func (r *run) remaining() {
	for range 200 {
		r.pass()
		before := r.take(0).Remaining
		if before < r.Limit {
			r.must(!r.take(before+1).OK, "%d are admitted where %d remain", before+1, before)
		}
		if before > 0 {
			n := 1 + r.random.IntN(before)
			result := r.take(n)
			r.must(result.OK && result.Remaining == before-n, "Take(%d) answers %+v where %d remain", n, result, before)
		}
	}
}

func (r *run) retry() {
	for range 300 {
		r.pass()
		n := r.some()
		result := r.take(n)
		if result.OK {
			r.must(result.RetryAfter == 0, "an admission has RetryAfter %s", result.RetryAfter)
			continue
		}
		r.must(result.RetryAfter > 0 && result.RetryAfter < limiter.Never, "a refusal has RetryAfter %s", result.RetryAfter)
		if r.random.IntN(2) == 0 {
			continue
		}
		r.at += result.RetryAfter - 1
		if early := r.take(n); early.OK {
			r.must(!r.Exact, "Take(%d) succeeds before RetryAfter", n)
			continue
		}
		r.at++
		r.must(r.take(n).OK, "Take(%d) is refused again after RetryAfter %s", n, result.RetryAfter)
	}
}

func (r *run) reset() {
	for range 100 {
		r.pass()
		result := r.take(r.some())
		r.must(result.ResetAfter >= 0 && (result.ResetAfter == 0) == (result.Remaining == r.Limit), "an answer is %+v", result)
		if r.random.IntN(4) == 0 {
			r.at += result.ResetAfter
			r.must(r.take(0).Remaining == r.Limit, "%d remain after ResetAfter", r.take(0).Remaining)
		}
	}
}

func (r *run) refunds() {
	for range 100 {
		r.pass()
		before, n := r.take(0), r.some()
		if r.take(n).OK {
			r.l.Refund(n)
			after := r.take(0).Remaining
			r.must(after == before.Remaining, "%d remain after Take(%d) and its Refund, not %d", after, n, before.Remaining)
		}
		r.take(r.some())
	}
	for _, n := range []int{r.Limit, 1<<31 - 1, 0, -1, -1 << 31} {
		r.l.Refund(n)
		r.must(r.take(0).Remaining == r.Limit, "%d remain after a Refund of everything, and of %d", r.take(0).Remaining, n)
	}
	r.must(r.take(r.Limit).OK && !r.take(1).OK, "refunds have filled the limiter beyond its limit")
}

func (r *run) bound() {
	for range 300 {
		last := r.at
		if r.pass(); r.random.IntN(3) == 0 { // gather at the edges, where bounds are weakest
			edge := r.at - r.at%r.Step + time.Duration(r.random.IntN(3))*(r.Step-1)
			r.at = max(edge, last)
		}
		for n := r.some(); n > 0 && !r.take(n).OK; n /= 2 {
		}
	}
	r.withinBound(r.admitted)
}

// withinBound checks every span between two admissions.
func (r *run) withinBound(admitted []admission) {
	for i, first := range admitted {
		sum := 0
		for _, last := range admitted[i:] {
			sum += last.n
			most := r.Most(last.at - first.at)
			r.must(sum <= most, "%d were admitted within %s from %s, at most %d may be", sum, last.at-first.at, first.at, most)
		}
	}
}

// stale gives times that jump to and fro in some span: no part of it may be paid out twice.
func (r *run) stale() {
	span := r.Step * time.Duration(3*r.Limit)
	admitted := 0
	for range 500 {
		r.at = time.Duration(r.random.Int64N(int64(span)))
		if n := r.some(); r.take(n).OK {
			admitted += n
		}
	}
	r.must(admitted <= r.Most(span), "%d were admitted within %s, at most %d may be", admitted, span, r.Most(span))
}

func (r *run) together() {
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 2 * r.Limit {
				n := 1 + i%2
				if r.l.TakeAt(origin, n).OK {
					admitted.Add(int64(n))
				}
				r.l.TakeAt(origin, 0)
			}
		})
	}
	all.Wait()
	r.must(admitted.Load() == int64(r.Limit), "%d of %d were admitted at once", admitted.Load(), r.Limit)
}
