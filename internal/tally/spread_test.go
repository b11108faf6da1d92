package tally_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

// TestCrowded reads words that change so often while they are looked at.
func TestCrowded(t *testing.T) {
	for _, c := range []struct {
		changes int
		want    bool
	}{{0, false}, {1, false}, {3, false}, {4, true}, {900, true}} {
		reads, word := 0, uint64(77)
		read := func() uint64 {
			if reads++; reads > 50 && reads <= 50+c.changes {
				word++
			}
			return word
		}
		require.Equal(t, c.want, tally.Crowded(read), "%d changes", c.changes)
	}
}

func TestACountIsExactHoweverManyAdd(t *testing.T) {
	const adders, each = 8, 50_000
	for name, prepare := range map[string]func(*tally.Count){"as it comes": func(*tally.Count) {}, "spread": tally.SpreadOut} {
		var c tally.Count
		prepare(&c)
		var done atomic.Bool
		var adding, reading sync.WaitGroup
		reading.Go(func() {
			for last := int64(0); !done.Load(); {
				n := c.Load()
				if n < last || n > adders*each {
					t.Errorf("%s: the count came from %d to %d", name, last, n)
					return
				}
				last = n
			}
		})
		for range adders {
			adding.Go(func() {
				for i := range each {
					c.Add()
					if i == each/2 {
						tally.SpreadOut(&c) // while others add
					}
				}
			})
		}
		adding.Wait()
		done.Store(true)
		reading.Wait()
		require.EqualValues(t, adders*each, c.Load(), name)
	}
}

// meanwhile calls f on several goroutines until it has what it wants, which takes two processors:
// on one nobody adds while another one looks.
func meanwhile(t *testing.T, f func(), enough func() bool) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for end := time.Now().Add(time.Minute); !enough() && time.Now().Before(end) && runtime.NumCPU() > 1; {
				for range 10_000 {
					f()
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, runtime.NumCPU() > 1, enough())
}

func TestACountIsSpreadOnceItIsCrowded(t *testing.T) {
	var c tally.Count
	for range 10 * tally.Seldom {
		c.Add()
	}
	require.False(t, tally.IsSpread(&c), "by one goroutine")
	meanwhile(t, c.Add, func() bool { return tally.IsSpread(&c) })
}

func TestSuccessesAreSpreadOnceTheyAreCrowded(t *testing.T) {
	apart, shared := tally.New(time.Hour, 2, slow), tally.New(time.Hour, 2, slow)
	shared.Share()
	for range 10 * tally.Seldom {
		shared.Record(0, tally.Success, 0)
	}
	require.False(t, tally.Spreads(shared), "by one goroutine")
	both := func() {
		apart.Record(0, tally.Success, 0)
		shared.Record(0, tally.Success, 0)
	}
	meanwhile(t, both, func() bool { return tally.Spreads(shared) })
	require.False(t, tally.Spreads(apart), "which has not been told to share")
	require.Equal(t, apart.Totals().Successes, shared.Totals().Successes-10*tally.Seldom)
}

// TestEveryCellCounts takes a new cell for each add, since the collector empties the pool, and
// begins anew when all are taken.
func TestEveryCellCounts(t *testing.T) {
	var c tally.Count
	tally.SpreadOut(&c)
	for n := range int64(40) {
		require.Equal(t, n, c.Load())
		c.Add()
		runtime.GC()
		runtime.GC()
	}
}

func TestASpreadSuccessEndsAStreak(t *testing.T) {
	c := tally.New(time.Second, 2, slow)
	tally.Spread(c)
	c.Record(0, tally.Failure, 0)
	c.Hush(time.Minute, tally.Pair{}, tally.Pair{})
	require.EqualValues(t, 1, c.Streak())
	require.True(t, quiet(c, time.Minute))
	require.Zero(t, c.Streak())
}

// TestNoFailureIsSeenWithoutTheSuccessesBeforeIt has a success go before each failure, in a
// cell, as nothing bad counts then. So there are never more failures.
func TestNoFailureIsSeenWithoutTheSuccessesBeforeIt(t *testing.T) {
	const rounds = 300_000
	c := tally.New(time.Hour, 1, math.MaxInt64)
	tally.Spread(c)
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
	for n := range int64(rounds) {
		if _, quiet := c.Record(0, tally.Success, 0); !quiet {
			t.Fatal("what is before the floor is bad no more")
		}
		c.Record(0, tally.Failure, 0)
		c.Hush(0, tally.Pair{Low: 2*n + 2, High: n + 1}, tally.Pair{})
	}
	done.Store(true)
	reading.Wait()
	require.Equal(t, tally.Pair{Low: 2 * rounds, High: rounds}, c.Totals().Judged())
}

// TestWhoComesLastJudgesAll lets a failure and a success meet in a quiet tally. Each looks at
// the window unless it is told that it is quiet: one of them must have seen both.
func TestWhoComesLastJudgesAll(t *testing.T) {
	const rounds = 20_000
	verdicts := [2]tally.Verdict{tally.Success, tally.Failure}
	tallies := make([]*tally.Calls, rounds)
	for i := range tallies {
		tallies[i] = tally.New(time.Hour, 1, slow)
		tally.Spread(tallies[i])
		tallies[i].Record(0, tally.Success, 0)
	}
	var seen [2][rounds]tally.Pair
	var turn [2]atomic.Int64
	var both sync.WaitGroup
	for me, v := range verdicts {
		both.Go(func() {
			for i, c := range tallies {
				turn[me].Store(int64(i))
				for spins := 1; turn[1-me].Load() < int64(i); spins++ { // until the other is here too
					if spins%1000 == 0 {
						runtime.Gosched()
					}
				}
				if _, quiet := c.Record(0, v, 0); !quiet {
					seen[me][i] = c.Judged(0, tally.Pair{})
				}
			}
		})
	}
	both.Wait()
	for i := range rounds {
		all := tally.Pair{Low: 3, High: 1}
		require.True(t, seen[0][i] == all || seen[1][i] == all, "in round %d the success saw %v and the failure %v", i, seen[0][i], seen[1][i])
	}
}
