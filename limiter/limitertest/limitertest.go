// Package limitertest tests implementations of limiter.TimedLimiter. All limiters of package
// limiter pass it.
//
// To test your own limiter, call Run in a test:
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
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/limiter"
)

// Subject describes the limiter to test.
type Subject struct {
	// New returns a limiter for use with TakeAt from t0 on, with no tokens taken. Required.
	New func(t0 time.Time) limiter.TimedLimiter
	// Limit is the maximum number of tokens that one request can take, at least 1. Required.
	Limit int
	// Most returns the maximum number of tokens that may be taken within a span of time, including
	// both ends. Required.
	Most func(span time.Duration) int
	// Exact requires that the RetryAfter of a refusal is minimal. Default false: it may be longer.
	Exact bool
	// Step is about how long it takes until a token comes back. The tests advance the time in steps
	// of this size. Default 1s.
	Step time.Duration
	// Seeds is the number of random sequences that each test tries, at least 1. Use fewer for a
	// limiter that asks a server. Default 12.
	Seeds int
}

// Run tests the subject in several subtests.
func Run(t *testing.T, s Subject) {
	t.Helper()
	if s.Step == 0 {
		s.Step = time.Second
	}
	if s.Seeds == 0 {
		s.Seeds = 12
	}
	if s.Seeds < 0 {
		t.Fatalf("limitertest: Seeds is %d, want at least 1", s.Seeds)
	}
	for name, check := range map[string]func(*run){
		"starts full": (*run).testStartsFull, "peeks change nothing": (*run).testPeeks, "invalid requests are refused": (*run).testInvalid,
		"refusals change nothing": (*run).testRefusals, "remaining tokens can be taken": (*run).testRemaining,
		"RetryAfter holds": (*run).testRetryAfter, "ResetAfter holds": (*run).testResetAfter, "refunds": (*run).testRefunds,
		"never allows too many": (*run).testBound, "late refunds": (*run).testLateRefunds, "times that go back": (*run).testStaleTimes, "many at once": (*run).testConcurrentCalls,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range s.Seeds {
				check(&run{TB: t, Subject: s, l: s.New(origin), random: rand.New(rand.NewPCG(uint64(seed), 0))})
			}
		})
	}
}

// origin is the start of all tests: a boundary of all common windows.
var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// run is one test of a new limiter, at times since origin.
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

// take takes n tokens at the current time, and records them if they are allowed.
func (r *run) take(n int) limiter.Result {
	result := r.l.TakeAt(origin.Add(r.at), n)
	if result.OK && n > 0 {
		r.admitted = append(r.admitted, admission{r.at, n})
	}
	return result
}

// advanceTime advances the time at random, sometimes by a long time.
func (r *run) advanceTime() {
	switch step := int64(r.Step); r.random.IntN(8) {
	case 0:
	case 1:
		r.at += time.Duration(r.random.Int64N(step * int64(r.Limit+2)))
	default:
		r.at += time.Duration(r.random.Int64N(step))
	}
}

// randomTokens returns a random number of tokens, from 1 to Limit.
func (r *run) randomTokens() int { return 1 + r.random.IntN(r.Limit) }

func (r *run) require(ok bool, format string, args ...any) {
	r.Helper()
	if !ok {
		r.Fatalf("at %s: %s", r.at, fmt.Sprintf(format, args...))
	}
}

func (r *run) testStartsFull() {
	result := r.take(0)
	r.require(result == limiter.Result{OK: true, Limit: r.Limit, Remaining: r.Limit}, "a new limiter answers %+v", result)
	r.require(r.take(r.Limit).OK, "a new limiter refuses %d tokens", r.Limit)
	result = r.take(1)
	r.require(!result.OK && result.Remaining == 0, "an empty limiter answers %+v", result)
}

func (r *run) testPeeks() {
	for range 200 {
		r.advanceTime()
		before := r.take(0)
		r.require(before.OK && before.RetryAfter == 0, "a peek answers %+v", before)
		r.require(r.take(0) == before, "a peek has changed the state")
		r.take(r.randomTokens())
	}
}

func (r *run) testInvalid() {
	for range 50 {
		r.advanceTime()
		before := r.take(0)
		for _, n := range []int{-1, -1 << 31, r.Limit + 1, 1<<31 - 1} {
			result := r.take(n)
			r.require(!result.OK && result.RetryAfter == limiter.Never, "Take(%d) answers %+v", n, result)
		}
		r.require(r.take(0) == before, "an invalid request has changed the state")
		r.take(r.randomTokens())
	}
}

func (r *run) testRefusals() {
	for range 200 {
		r.advanceTime()
		before := r.take(0)
		if !r.take(r.randomTokens()).OK {
			r.require(r.take(0) == before, "a refusal has changed the state")
		}
	}
}

func (r *run) testRemaining() {
	for range 200 {
		r.advanceTime()
		before := r.take(0).Remaining
		if before < r.Limit {
			r.require(!r.take(before+1).OK, "Take(%d) is allowed although only %d remain", before+1, before)
		}
		if before > 0 {
			n := 1 + r.random.IntN(before)
			result := r.take(n)
			r.require(result.OK && result.Remaining == before-n, "Take(%d) answers %+v although %d remain", n, result, before)
		}
	}
}

func (r *run) testRetryAfter() {
	for range 300 {
		r.advanceTime()
		n := r.randomTokens()
		result := r.take(n)
		if result.OK {
			r.require(result.RetryAfter == 0, "an allowed request has RetryAfter %s", result.RetryAfter)
			continue
		}
		r.require(result.RetryAfter > 0 && result.RetryAfter < limiter.Never, "a refusal has RetryAfter %s", result.RetryAfter)
		if r.random.IntN(2) == 0 {
			continue
		}
		r.at += result.RetryAfter - 1
		if early := r.take(n); early.OK {
			r.require(!r.Exact, "Take(%d) succeeds before RetryAfter", n)
			continue
		}
		r.at++
		r.require(r.take(n).OK, "Take(%d) is refused again after RetryAfter %s", n, result.RetryAfter)
	}
}

func (r *run) testResetAfter() {
	for range 100 {
		r.advanceTime()
		result := r.take(r.randomTokens())
		r.require(result.ResetAfter >= 0 && (result.ResetAfter == 0) == (result.Remaining == r.Limit), "an answer is %+v", result)
		if r.random.IntN(4) == 0 {
			r.at += result.ResetAfter
			r.require(r.take(0).Remaining == r.Limit, "%d remain after ResetAfter", r.take(0).Remaining)
		}
	}
}

// refunder has the method Refund that limiter.Limiter describes.
type refunder interface {
	Refund(taken time.Time, n int)
}

func (r *run) testRefunds() {
	l, ok := r.l.(refunder)
	if !ok {
		return
	}
	for range 100 {
		r.advanceTime()
		before, n := r.take(0), r.randomTokens()
		if r.take(n).OK {
			l.Refund(origin.Add(r.at), n)
			after := r.take(0).Remaining
			r.require(after == before.Remaining, "%d remain after Take(%d) and its Refund, not %d", after, n, before.Remaining)
		}
		r.take(r.randomTokens())
	}
	r.take(r.take(0).Remaining)
	for _, n := range []int{0, -1, -1 << 31} {
		l.Refund(origin.Add(r.at), n)
		r.require(r.take(0).Remaining == 0, "%d remain after a Refund of %d", r.take(0).Remaining, n)
	}
}

// testLateRefunds gives tokens back at any time after they were taken. Requests whose tokens were
// given back were not made.
func (r *run) testLateRefunds() {
	l, ok := r.l.(refunder)
	if !ok {
		return
	}
	for range 300 {
		r.advanceTime()
		for n := r.randomTokens(); n > 0 && !r.take(n).OK; n /= 2 {
		}
		if len(r.admitted) > 0 && r.random.IntN(2) == 0 {
			i := max(len(r.admitted)-1-r.random.IntN(4), 0)
			l.Refund(origin.Add(r.admitted[i].at), r.admitted[i].n)
			r.admitted = slices.Delete(r.admitted, i, i+1)
		}
	}
	r.withinBound(r.admitted)
}

func (r *run) testBound() {
	for range 300 {
		last := r.at
		if r.advanceTime(); r.random.IntN(3) == 0 { // prefer boundaries, where bounds are weakest
			edge := r.at - r.at%r.Step + time.Duration(r.random.IntN(3))*(r.Step-1)
			r.at = max(edge, last)
		}
		for n := r.randomTokens(); n > 0 && !r.take(n).OK; n /= 2 {
		}
	}
	r.withinBound(r.admitted)
}

// withinBound checks every span between two allowed requests.
func (r *run) withinBound(admitted []admission) {
	for i, first := range admitted {
		sum := 0
		for _, last := range admitted[i:] {
			sum += last.n
			most := r.Most(last.at - first.at)
			r.require(sum <= most, "%d tokens were allowed within %s from %s, want at most %d", sum, last.at-first.at, first.at, most)
		}
	}
}

// testStaleTimes uses times that go back and forth. No part of the span may add tokens twice.
func (r *run) testStaleTimes() {
	span := r.Step * time.Duration(3*r.Limit)
	admitted := 0
	for range 500 {
		r.at = time.Duration(r.random.Int64N(int64(span)))
		if n := r.randomTokens(); r.take(n).OK {
			admitted += n
		}
	}
	r.require(admitted <= r.Most(span), "%d tokens were allowed within %s, want at most %d", admitted, span, r.Most(span))
}

func (r *run) testConcurrentCalls() {
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
	r.require(admitted.Load() == int64(r.Limit), "%d tokens were allowed at the same time, want %d", admitted.Load(), r.Limit)
}
