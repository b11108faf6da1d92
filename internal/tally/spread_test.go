package tally_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

// TestChanging reads words that change so often while they are looked at.
func TestChanging(t *testing.T) {
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
		require.Equal(t, c.want, tally.Changing(read), "%d changes", c.changes)
	}
}

func TestACountIsExactHoweverManyAdd(t *testing.T) {
	const adders, each = 8, 50_000
	for name, prepare := range map[string]func(*tally.Count){"as it comes": func(*tally.Count) {}, "spread": (*tally.Count).Spread} {
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
						c.Spread() // while others add
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

// TestMemoryOfASpreadCount measures what docs/accuracy.md says.
func TestMemoryOfASpreadCount(t *testing.T) {
	const n = 500
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	counts := make([]tally.Count, n)
	before := heap()
	for i := range counts {
		counts[i].Spread()
	}
	cells := (heap() - before) / n
	for i := range counts {
		counts[i].Add()
	}
	runtime.GC() // after which the pools have what they had before, and what they have now
	for i := range counts {
		counts[i].Add()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	all := (m.HeapAlloc - before) / n
	runtime.KeepAlive(counts)
	t.Logf("%d bytes of cells, %d with the pools of %d processors", cells, all, runtime.GOMAXPROCS(0))
	require.LessOrEqual(t, cells, uint64(2350))
	require.LessOrEqual(t, all, uint64(2350+320*runtime.GOMAXPROCS(0)))
}

// TestEveryCellCounts takes a new cell for each add, since the collector empties the pool, and
// begins anew when all are taken.
func TestEveryCellCounts(t *testing.T) {
	var c tally.Count
	c.Spread()
	for n := range int64(40) {
		require.Equal(t, n, c.Load())
		c.Add()
		runtime.GC()
		runtime.GC()
	}
}

// TestACountIsSpreadOnceItIsCrowded is looked at once in so many adds.
func TestACountIsSpreadOnceItIsCrowded(t *testing.T) {
	var c tally.Count
	add := func(n int) {
		for range n {
			c.Add()
		}
	}
	tally.Crowd(t, false)
	add(tally.Seldom)
	tally.Crowd(t, true)
	add(tally.Seldom - 1)
	require.False(t, tally.IsSpread(&c))
	add(1)
	require.True(t, tally.IsSpread(&c))
	add(3 * tally.Seldom)
	require.EqualValues(t, 5*tally.Seldom, c.Load())
}

func TestSuccessesAreSpreadOnceTheyAreCrowded(t *testing.T) {
	for name, share := range map[string]func(*tally.Calls){
		"":          func(*tally.Calls) {},
		"otherwise": func(c *tally.Calls) { c.Share(false) },
		"always":    func(c *tally.Calls) { c.Share(true) },
	} {
		c := tally.New(time.Hour, 2, slow)
		share(c)
		record := func(n int) {
			for range n {
				c.Record(0, tally.Success, 0)
			}
		}
		tally.Crowd(t, false)
		record(tally.Seldom)
		tally.Crowd(t, true)
		record(tally.Seldom - 1)
		require.False(t, tally.Spreads(c), name)
		record(1)
		require.Equal(t, name != "", tally.Spreads(c), name)
		require.Equal(t, name != "", c.Spread(), name)
		record(3 * tally.Seldom)
		require.EqualValues(t, 5*tally.Seldom, c.Totals().Successes, name)
	}
}

// TestWhoSharesAlwaysDoesSoAfterAFailureToo looks for where calls were counted.
func TestWhoSharesAlwaysDoesSoAfterAFailureToo(t *testing.T) {
	for _, always := range []bool{false, true} {
		c := tally.New(time.Hour, 2, slow)
		c.Share(always)
		c.Spread()
		c.Record(0, tally.Success, 0)
		c.Record(0, tally.Failure, 0)
		require.EqualValues(t, 1, tally.InCells(c))
		c.Record(0, tally.Success, 0)
		c.Record(0, tally.Success, slow+1)
		c.Record(0, tally.Ignored, 0)
		if always {
			require.EqualValues(t, 2, tally.InCells(c))
		} else {
			require.EqualValues(t, 1, tally.InCells(c), "who judges each call would have to look into the cells")
		}
		require.Equal(t, tally.Counts{Successes: 3, Failures: 1, Slow: 1, Ignored: 1}, c.Totals())
	}
}

func TestASpreadSuccessEndsAStreak(t *testing.T) {
	c := tally.New(time.Second, 2, slow)
	c.Share(false)
	c.Spread()
	c.Record(0, tally.Failure, 0)
	c.Hush(time.Minute, tally.Pair{}, tally.Pair{})
	require.EqualValues(t, 1, c.Streak())
	require.True(t, quiet(c, time.Minute))
	require.Zero(t, c.Streak())
}

// TestNoSuccessIsLostWhileBucketsRoll counts into cells across bucket edges.
func TestNoSuccessIsLostWhileBucketsRoll(t *testing.T) {
	const writers, calls, width, buckets = 4, 50_000, 1000, 4
	c := tally.New(width, buckets, slow)
	c.Share(true)
	c.Spread()
	var clock atomic.Int64
	var done atomic.Bool
	var writing, reading sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for n := range calls {
				v := tally.Success
				if n%10 == i {
					v = tally.Failure
				}
				c.Record(time.Duration(clock.Add(width/10)), v, 0)
			}
		})
	}
	reading.Go(func() {
		for last := (tally.Counts{}); !done.Load(); {
			n, p := c.Totals(), c.Judged(time.Duration(clock.Load()), tally.Pair{})
			if n.Successes < last.Successes || n.Failures < last.Failures || p.High > p.Low || p.Low > writers*calls {
				t.Errorf("totals went from %+v to %+v; %d failures of %d calls in the window", last, n, p.High, p.Low)
				return
			}
			last = n
		}
	})
	writing.Wait()
	done.Store(true)
	reading.Wait()
	require.Equal(t, tally.Pair{Low: writers * calls, High: writers * calls / 10}, c.Totals().Judged())
	require.Greater(t, tally.InCells(c), uint64(writers*calls/2))
	// What was added to the words after the last roll is of no more than the window's calls.
	at := time.Duration(clock.Load())
	require.LessOrEqual(t, c.Judged(at, tally.Pair{}).Low, int64(buckets*10+writers))
	require.Zero(t, c.Judged(at+buckets*width, tally.Pair{}).Low)
}

// TestNoFailureIsSeenWithoutTheSuccessesBeforeIt has a success go before each failure, in a
// cell. So there are never more failures.
func TestNoFailureIsSeenWithoutTheSuccessesBeforeIt(t *testing.T) {
	const rounds = 300_000
	c := tally.New(time.Hour, 1, slow)
	c.Share(true)
	c.Spread()
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
	require.Equal(t, tally.Pair{Low: 2 * rounds, High: rounds}, c.Totals().Judged())
	require.EqualValues(t, rounds, tally.InCells(c))
}

// TestNoSlowCallIsSeenWithoutTheCallsBeforeIt has nine good calls go before each slow one.
func TestNoSlowCallIsSeenWithoutTheCallsBeforeIt(t *testing.T) {
	c := tally.New(time.Hour, 1, slow)
	var done atomic.Bool
	var reading sync.WaitGroup
	for range 4 { // more than there are processors: who is put aside between two loads sees the most
		reading.Go(func() {
			for !done.Load() {
				if calls, slows := c.Hush(0, tally.Pair{}, tally.Pair{}); slows.Low*10 > calls.Low {
					t.Errorf("%d slow calls of %d", slows.Low, calls.Low)
					return
				}
			}
		})
	}
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		for i := range 1000 {
			took := time.Duration(0)
			if i%10 == 9 {
				took = slow + 1
			}
			c.Record(0, tally.Success, took)
		}
	}
	done.Store(true)
	reading.Wait()
}

// meet runs two functions at the same time, round after round, and then a third.
func meet(rounds int, prepare, one, other, after func()) {
	var begun, ended atomic.Int64
	wait := func(n *atomic.Int64, round int) {
		for spins := 1; n.Load() < int64(round); spins++ {
			if spins%1000 == 0 {
				runtime.Gosched()
			}
		}
	}
	go func() {
		for round := range rounds {
			wait(&begun, round+1)
			other()
			ended.Add(1)
		}
	}()
	for round := range rounds {
		prepare()
		begun.Add(1)
		for range round % 64 { // the other one has to hear of it
			begun.Load()
		}
		one()
		wait(&ended, round+1)
		after()
	}
}

// TestWhoComesLastJudgesAll lets a failure and a success meet in a quiet tally. Each looks at
// the window unless it is told that it is quiet: one of them must have seen both.
func TestWhoComesLastJudgesAll(t *testing.T) {
	var c *tally.Calls
	var seen [2]tally.Pair
	record := func(i int, v tally.Verdict) {
		if _, quiet := c.Record(0, v, 0); !quiet {
			seen[i] = c.Judged(0, tally.Pair{})
		}
	}
	meet(50_000, func() {
		c, seen = tally.New(time.Hour, 1, slow), [2]tally.Pair{}
		c.Share(false)
		c.Spread()
		c.Record(0, tally.Success, 0)
	}, func() { record(0, tally.Success) }, func() { record(1, tally.Failure) }, func() {
		all := tally.Pair{Low: 3, High: 1}
		require.True(t, seen[0] == all || seen[1] == all, "the success saw %v and the failure %v", seen[0], seen[1])
	})
}

// TestAFailureIsNotHushedUnseen lets a failure meet one who looks whether there is none.
func TestAFailureIsNotHushedUnseen(t *testing.T) {
	for _, bad := range []func(*tally.Calls){
		func(c *tally.Calls) { c.Record(0, tally.Failure, 0) },
		func(c *tally.Calls) { c.Record(0, tally.Success, slow+1) },
	} {
		var c *tally.Calls
		meet(50_000, func() {
			c = tally.New(time.Hour, 1, slow)
			c.Record(0, tally.Success, 0)
		}, func() { c.Hush(0, tally.Pair{}, tally.Pair{}) }, func() { bad(c) }, func() {
			require.False(t, quiet(c, 0), "with a bad call in the window")
		})
	}
}
