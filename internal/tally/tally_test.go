package tally_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/internal/testenv"
)

const slowDuration = 100 * time.Millisecond

// plainLog is a simple window that keeps every call with its bucket.
type plainLog struct {
	width   int64
	buckets int64
	newest  int64
	streak  int64
	calls   []call
}

type call struct {
	bucket int64
	counts tally.Counts
}

func (l *plainLog) add(at time.Duration, c tally.Counts) {
	l.newest = max(l.newest, floorDiv(int64(at), l.width))
	l.calls = append(l.calls, call{l.newest, c})
	if c.Failures > 0 {
		l.streak++
	} else if c.Successes > 0 {
		l.streak = 0
	}
}

// window returns the sum of the calls in the window, without those before the index since.
func (l *plainLog) window(at time.Duration, since int) (sum tally.Counts) {
	first := max(l.newest, floorDiv(int64(at), l.width)) - l.buckets + 1
	for _, c := range l.calls[since:] {
		if c.bucket >= first {
			sum = addCounts(sum, c.counts)
		}
	}
	sum.ConsecutiveFailures = l.streak
	return sum
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func addCounts(a, b tally.Counts) tally.Counts {
	a.Successes += b.Successes
	a.Failures += b.Failures
	a.Slow += b.Slow
	a.SlowFailures += b.SlowFailures
	a.Ignored += b.Ignored
	a.Refused += b.Refused
	return a
}

// recordBoth records a call of the given kind in the tally and in the log.
func recordBoth(c *tally.Calls, l *plainLog, at time.Duration, kind byte) {
	took := time.Duration(0)
	var one tally.Counts
	if kind&8 != 0 {
		took = slowDuration + 1
	}
	switch kind % 4 {
	case 0:
		c.Record(at, tally.Success, took)
		one = tally.Counts{Successes: 1}
	case 1:
		c.Record(at, tally.Failure, took)
		one = tally.Counts{Failures: 1}
	case 2:
		c.Record(at, tally.Ignored, took)
		one = tally.Counts{Ignored: 1}
	case 3:
		c.Refuse(at)
		one = tally.Counts{Refused: 1}
	}
	if took > slowDuration && one.Successes+one.Failures > 0 {
		one.Slow, one.SlowFailures = 1, one.Failures
	}
	l.add(at, one)
}

// FuzzAgainstPlainLog records the same calls in a tally and in a plain log, at times that advance,
// stand still, jump by years and go back, and compares every reading.
func FuzzAgainstPlainLog(f *testing.F) {
	f.Add(uint16(1000), uint8(10), []byte{0, 0, 1, 1, 9, 200, 40, 0, 3, 120, 1, 255})
	f.Add(uint16(1), uint8(1), []byte{1, 1, 1, 1, 2, 2})
	f.Add(uint16(60_000), uint8(5), []byte{0, 250, 0, 250, 1, 251, 0, 240})
	f.Fuzz(func(t *testing.T, width uint16, buckets uint8, ops []byte) {
		w := time.Duration(width)*time.Millisecond + 1
		n := int(buckets)%50 + 1
		c := tally.New(w, n, slowDuration)
		if width%2 == 1 {
			c.Stripe()
		}
		l := &plainLog{width: int64(w), buckets: int64(n)}
		var at time.Duration
		var floor tally.Counts
		var since int
		for i := 0; i+1 < len(ops); i += 2 {
			at += timeStep(ops[i+1], w)
			recordBoth(c, l, at, ops[i])
			if ops[i]&64 != 0 {
				floor, since = c.Totals(), len(l.calls)
			}
			look := at + timeStep(ops[i]^ops[i+1], w)
			require.Equal(t, l.window(look, 0), c.Window(look, &tally.Counts{}), "window at %v after step %d", look, i/2)
			want := l.window(look, since)
			require.Equal(t, want, c.Window(look, &floor), "window since step %d at %v", since, look)
			rates := c.Rates
			if ops[i]&32 != 0 {
				rates = func(at time.Duration, since *tally.Counts) (all, slows tally.Pair) {
					return c.RatesAndMarkClean(at, since, new(cusum.Counter))
				}
			}
			calls, slows := rates(look, &floor)
			require.Equal(t, callsOf(want), calls)
			require.Equal(t, tally.Pair{Calls: want.Slow, Failures: want.SlowFailures}, slows)
		}
		l.buckets = math.MaxInt64 / 2
		require.Equal(t, l.window(math.MinInt64, 0), c.Totals())
	})
}

// callsOf returns the calls with a verdict and the failures among them.
func callsOf(c tally.Counts) tally.Pair {
	return tally.Pair{Calls: c.Successes + c.Failures, Failures: c.Failures}
}

// timeStep converts a byte to a step of time.
func timeStep(b byte, width time.Duration) time.Duration {
	switch {
	case b < 100:
		return time.Duration(b) * width / 16
	case b < 200:
		return time.Duration(b-100) * width
	case b < 240:
		return -time.Duration(b-200) * width / 4
	case b < 250:
		return time.Duration(b-239) * time.Minute
	default:
		return time.Duration(b-249) * 365 * 24 * time.Hour
	}
}

func TestExtremeOffsets(t *testing.T) {
	c := tally.New(time.Second, 10, slowDuration)
	for _, at := range []time.Duration{math.MinInt64, -1, 0, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, 0} {
		c.Record(at, tally.Success, 0)
	}
	require.Equal(t, int64(7), c.Totals().Successes)
	// The window has moved to the last offset, and later calls count there.
	require.Equal(t, int64(4), c.Window(0, &tally.Counts{}).Successes)
}

// TestLongBucketsDoNotOverflowAWord adds more than 2³² to both halves of a counter within a bucket,
// as many processors can in seconds. The difference is moved into the totals once a second.
func TestLongBucketsDoNotOverflowAWord(t *testing.T) {
	c := tally.New(time.Hour, 2, slowDuration)
	const perSecond = 1 << 31
	var want int64
	for second := range 5 {
		at := time.Duration(second) * time.Second
		c.Record(at, tally.Failure, 0)
		tally.AddFailures(c, perSecond)
		want += 1 + perSecond
	}
	sum := c.Window(5*time.Second, &tally.Counts{})
	require.Equal(t, want, sum.Failures)
	require.Zero(t, sum.Successes)
	require.Equal(t, want, c.Totals().Failures)
}

func TestARefusalBeginsABucket(t *testing.T) {
	c := tally.New(time.Second, 2, slowDuration)
	c.Record(0, tally.Success, 0)
	c.Refuse(time.Second) // the first nanosecond of the second bucket
	require.EqualValues(t, 1, c.Window(2*time.Second, &tally.Counts{}).Refused)
	require.Zero(t, c.Window(3*time.Second, &tally.Counts{}).Refused)
}

// TestNoIncrementIsLost records from many goroutines, across bucket edges and idle times longer
// than the window, while other goroutines read. Every call is a failure, so calls and failures must
// be equal in every reading.
func TestNoIncrementIsLost(t *testing.T) {
	const writers, calls, width = 8, 20_000, 1000
	c := tally.New(width, 8, math.MaxInt64)
	var clock atomic.Int64
	var done atomic.Bool
	var writing, reading sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for range calls {
				step := rnd.Int64N(width / 2)
				if rnd.IntN(1000) == 0 {
					step = 20 * width // idle for longer than the window
				}
				c.Record(time.Duration(clock.Add(step)), tally.Failure, 0)
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			var last int64
			for !done.Load() {
				p, _ := c.Rates(time.Duration(clock.Load()), &tally.Counts{})
				if p.Calls != p.Failures || p.Calls < 0 || p.Calls > writers*calls {
					t.Errorf("%d failures of %d calls in one reading", p.Failures, p.Calls)
					return
				}
				total := c.Totals()
				if total.Successes != 0 || total.Failures < last {
					t.Errorf("totals are %+v after %d failures", total, last)
					return
				}
				last = total.Failures
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	require.Equal(t, int64(writers*calls), c.Totals().Failures)
	require.Equal(t, int64(writers*calls), c.Totals().ConsecutiveFailures)
}

// TestPausesEqualThePlainLog records from many goroutines in rounds. After each round
// the window must equal a plain log of the calls: across bucket edges, after idle times longer than
// the window, and at stale times.
// Scenario A10.
func TestPausesEqualThePlainLog(t *testing.T) {
	for _, striped := range []bool{false, true} {
		compareAfterRounds(t, striped)
	}
}

func compareAfterRounds(t *testing.T, striped bool) {
	const writers, each, width, buckets = 8, 50, 1000, 6
	rounds := testenv.Repeat(150, 60)
	c := tally.New(width, buckets, slowDuration)
	if striped {
		c.Stripe()
	}
	l := &plainLog{width: width, buckets: buckets}
	rnd := rand.New(rand.NewPCG(4, 4))
	var at time.Duration
	for range rounds {
		at += []time.Duration{0, 1, width / 3, width, 3 * width, 50 * width, -width}[rnd.IntN(7)]
		kinds := make([]byte, writers)
		for i := range kinds {
			kinds[i] = byte(rnd.IntN(16))
		}
		var wg sync.WaitGroup
		for _, kind := range kinds {
			wg.Go(func() {
				scratch := &plainLog{width: width, buckets: buckets}
				for range each {
					recordBoth(c, scratch, at, kind)
				}
			})
		}
		wg.Wait()
		for _, kind := range kinds {
			for range each {
				recordBoth(tally.New(width, 1, slowDuration), l, at, kind)
			}
		}
		want, got := l.window(at, 0), c.Window(at, &tally.Counts{})
		// the order of the last calls is not known
		want.ConsecutiveFailures, got.ConsecutiveFailures = 0, 0
		require.Equal(t, want, got)
		l.calls = l.calls[max(0, len(l.calls)-50_000):]
	}
	require.Equal(t, int64(rounds*writers*each), endedCalls(c.Totals()))
}

// endedCalls returns the number of all calls.
func endedCalls(n tally.Counts) int64 { return n.Successes + n.Failures + n.Ignored + n.Refused }
