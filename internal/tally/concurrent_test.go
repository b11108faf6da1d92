package tally_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/internal/testenv"
)

func TestOnlySuccessesAreStriped(t *testing.T) {
	c := tally.New(time.Hour, 2, slowDuration)
	c.Record(0, tally.Success, 0)
	require.Zero(t, tally.Striped(c))
	c.Stripe()
	c.Record(0, tally.Success, 0)
	c.Record(0, tally.Failure, 0)
	c.Record(0, tally.Success, slowDuration+1)
	c.Record(0, tally.Ignored, 0)
	require.EqualValues(t, 2, tally.Striped(c))
	require.Equal(t, tally.Counts{Successes: 3, Failures: 1, Slow: 1, Ignored: 1}, c.Totals())
}

// TestNoSuccessIsLostWhileBucketsRoll counts into stripes across bucket edges.
func TestNoSuccessIsLostWhileBucketsRoll(t *testing.T) {
	const writers, calls, width, buckets = 4, 50_000, 1000, 4
	c := tally.New(width, buckets, slowDuration)
	c.Stripe()
	var clock atomic.Int64
	var done atomic.Bool
	var writing, reading sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for n := range calls {
				o := tally.Success
				if n%10 == i {
					o = tally.Failure
				}
				c.Record(time.Duration(clock.Add(width/10)), o, 0)
			}
		})
	}
	reading.Go(func() {
		for last := (tally.Counts{}); !done.Load(); {
			n := c.Totals()
			p, _ := c.Rates(time.Duration(clock.Load()), &tally.Counts{})
			if n.Successes < last.Successes || n.Failures < last.Failures || p.Failures > p.Calls || p.Calls > writers*calls {
				t.Errorf("totals went from %+v to %+v; %d failures of %d calls in the window", last, n, p.Failures, p.Calls)
				return
			}
			last = n
		}
	})
	writing.Wait()
	done.Store(true)
	reading.Wait()
	require.Equal(t, tally.Pair{Calls: writers * calls, Failures: writers * calls / 10}, callsOf(c.Totals()))
	require.EqualValues(t, writers*calls*9/10, tally.Striped(c))
	at := time.Duration(clock.Load())
	p, _ := c.Rates(at, &tally.Counts{})
	require.LessOrEqual(t, p.Calls, int64(buckets*10+writers), "no more than the calls of the window")
	p, _ = c.Rates(at+buckets*width, &tally.Counts{})
	require.Zero(t, p.Calls)
}

// TestNoFailureIsSeenWithoutTheSuccessesBeforeIt records a striped success before each failure, so
// no reader may see more failures than successes.
func TestNoFailureIsSeenWithoutTheSuccessesBeforeIt(t *testing.T) {
	const rounds = 300_000
	c := tally.New(time.Hour, 1, slowDuration)
	c.Stripe()
	var done atomic.Bool
	var reading sync.WaitGroup
	reading.Go(func() {
		for !done.Load() {
			if n := c.Totals(); n.Failures > n.Successes {
				t.Errorf("%d failures, %d successes", n.Failures, n.Successes)
				return
			}
		}
	})
	for range rounds {
		c.Record(0, tally.Success, 0)
		c.Record(0, tally.Failure, 0)
	}
	done.Store(true)
	reading.Wait()
	require.Equal(t, tally.Pair{Calls: 2 * rounds, Failures: rounds}, callsOf(c.Totals()))
	require.EqualValues(t, rounds, tally.Striped(c))
}

// TestNoSlowCallIsSeenWithoutTheCallsBeforeIt records nine fast calls before each slow one.
func TestNoSlowCallIsSeenWithoutTheCallsBeforeIt(t *testing.T) {
	for _, striped := range []bool{false, true} {
		c := tally.New(time.Hour, 1, slowDuration)
		if striped {
			c.Stripe()
		}
		var done atomic.Bool
		var reading sync.WaitGroup
		for range 4 {
			// more readers than processors: one that is preempted between two loads sees the most
			reading.Go(func() {
				for !done.Load() {
					if calls, slows := c.RatesAndMarkClean(0, &tally.Counts{}, new(cusum.Counter)); slows.Calls*10 > calls.Calls {
						t.Errorf("striped %v: %d slow calls of %d", striped, slows.Calls, calls.Calls)
						return
					}
				}
			})
		}
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
			for i := range 1000 {
				took := time.Duration(0)
				if i%10 == 9 {
					took = slowDuration + 1
				}
				c.Record(0, tally.Success, took)
			}
		}
		done.Store(true)
		reading.Wait()
	}
}

// atTheSameTime passes new values to one and other, which run concurrently, and then to after. For
// each value the two goroutines wait for each other, but only briefly: on a busy machine the other
// one may be stopped for milliseconds.
func atTheSameTime[T any](rounds int, prepare func() T, one, other, after func(T)) {
	const batch = 200
	values := make([]T, batch)
	for range rounds / batch {
		for i := range values {
			values[i] = prepare()
		}
		var reached [2]atomic.Int64
		meet := func(me, i int) {
			reached[me].Store(int64(i))
			for spins := 0; spins < 200 && reached[1-me].Load() < int64(i); spins++ {
			}
		}
		var second sync.WaitGroup
		second.Go(func() {
			for i, v := range values {
				meet(1, i)
				other(v)
			}
		})
		for i, v := range values {
			meet(0, i)
			for range i % 64 { // until the other goroutine has noticed
				reached[0].Load()
			}
			one(v)
		}
		second.Wait()
		for _, v := range values {
			after(v)
		}
	}
}

// TestTheLaterOfTwoCallsCountsBoth records a success and a failure at the same time in a clean
// window. Each of the two goroutines then reads the window, unless the window is clean. So at least
// one of them must have read both calls.
func TestTheLaterOfTwoCallsCountsBoth(t *testing.T) {
	type pair struct {
		c    *tally.Calls
		seen [2]tally.Pair
	}
	record := func(p *pair, i int, o tally.Outcome) {
		if _, clean := p.c.Record(0, o, 0); !clean {
			p.seen[i], _ = p.c.Rates(0, &tally.Counts{})
		}
	}
	atTheSameTime(testenv.Repeat(50_000, 15_000), func() *pair {
		p := &pair{c: tally.New(time.Hour, 1, slowDuration)}
		p.c.Stripe()
		p.c.Record(0, tally.Success, 0)
		return p
	}, func(p *pair) { record(p, 0, tally.Success) }, func(p *pair) { record(p, 1, tally.Failure) }, func(p *pair) {
		all := tally.Pair{Calls: 3, Failures: 1}
		require.True(t, p.seen[0] == all || p.seen[1] == all, "the success saw %v and the failure %v", p.seen[0], p.seen[1])
	})
}

// TestAWindowIsNotMarkedCleanOverABadCall records a bad call while the window is marked clean.
func TestAWindowIsNotMarkedCleanOverABadCall(t *testing.T) {
	for _, bad := range []func(*tally.Calls){
		func(c *tally.Calls) { c.Record(0, tally.Failure, 0) },
		func(c *tally.Calls) { c.Record(0, tally.Success, slowDuration+1) },
	} {
		atTheSameTime(testenv.Repeat(50_000, 15_000), func() *tally.Calls {
			c := tally.New(time.Hour, 1, slowDuration)
			c.Record(0, tally.Success, 0)
			return c
		}, func(c *tally.Calls) { c.RatesAndMarkClean(0, &tally.Counts{}, new(cusum.Counter)) }, bad, func(c *tally.Calls) {
			require.False(t, recordSuccess(c, 0), "with a bad call in the window")
		})
	}
}

// TestReadersSeeNoTornWindowDuringRolls rolls at every call, so that the checkpoints and rows
// change under the readers all the time. One bucket in every few gets a failure, so the number of
// failures in the window of 14 buckets is known within one. The ring has no spare row at this size.
func TestReadersSeeNoTornWindowDuringRolls(t *testing.T) {
	for _, c := range []struct{ step, low, high int64 }{{1, 13, 14}, {5, 2, 3}} {
		const buckets = 14
		rolls := testenv.Repeat(200_000, 60_000)
		calls := tally.New(1, buckets, math.MaxInt64)
		record := func(i int64) { calls.Record(time.Duration(i*c.step), tally.Failure, 0) }
		for i := range int64(buckets) {
			record(i)
		}
		var done atomic.Bool
		var reading sync.WaitGroup
		for range 2 {
			reading.Go(func() {
				for !done.Load() {
					// an earlier offset counts as in the newest bucket
					p, _ := calls.Rates(0, &tally.Counts{})
					if p.Calls != p.Failures || p.Calls < c.low || p.Calls > c.high {
						t.Errorf("one failure per %d buckets: the window has %d failures of %d calls, want %d to %d",
							c.step, p.Failures, p.Calls, c.low, c.high)
						return
					}
				}
			})
		}
		for i := range int64(rolls) {
			record(i + buckets)
		}
		done.Store(true)
		reading.Wait()
	}
}
