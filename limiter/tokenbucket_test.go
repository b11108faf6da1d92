package limiter_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

const (
	ms   = time.Millisecond
	sec  = time.Second
	hour = time.Hour
	year = 365 * 24 * time.Hour
)

func TestTokenBucketSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  limiter.Rate
		burst int
		steps []step
	}{
		{"scenario 1: burst of one", limiter.PerSecond(10), 1, []step{
			{0, 1, "ok"},
			{0, 1, "refused"},
			{0, 1, "refused"},
			{100 * ms, 1, "ok"},
			{100 * ms, 1, "refused"},
			{100 * ms, 1, "refused"},
			{200 * ms, 2, "refused 1/1 retry never reset 0s"},
			{200 * ms, 1, "ok"},
			{200 * ms, 1, "refused"},
		}},
		{"scenario 2: burst of three", limiter.PerSecond(10), 3, []step{
			{0, 2, "ok"},
			{0, 2, "refused"},
			{0, 1, "ok"},
			{0, 1, "refused"},
			{100 * ms, 4, "refused"},
			{200 * ms, 1, "ok"},
			{300 * ms, 1, "ok"},
			{400 * ms, 1, "ok"},
			{400 * ms, 1, "ok"},
			{400 * ms, 1, "refused"},
			{900 * ms, 3, "ok"},
			{900 * ms, 0, "ok"},
		}},
		{"scenario 4: no limit", limiter.Unlimited(), 0, []step{
			{0, 1, "ok"}, {0, math.MaxInt, "ok"}, {0, -1, "refused"},
		}},
		{"scenario 4: nothing is admitted", limiter.PerSecond(1), limiter.Off, []step{
			{0, 1, "refused 0/0 retry never reset 0s"}, {time.Hour, 1, "refused 0/0 retry never reset 0s"}, {time.Hour, 0, "ok"},
		}},
		{"scenario 5: one a second, five at once", limiter.PerSecond(1), 5, []step{
			{0, 6, "refused 5/5 retry never reset 0s"},
			{0, 1, "ok 4/5 reset 1s"},
			{0, 1, "ok 3/5 reset 2s"},
			{0, 1, "ok 2/5 reset 3s"},
			{0, 1, "ok 1/5 reset 4s"},
			{0, 1, "ok 0/5 reset 5s"},
			{0, 1, "refused 0/5 retry 1s reset 5s"},
			{3000 * ms, 1, "ok 2/5 reset 3s"},
			{3100 * ms, 1, "ok 1/5 reset 3.9s"},
			{4000 * ms, 1, "ok 1/5 reset 4s"},
			{8000 * ms, 1, "ok 4/5 reset 1s"},
			{9500 * ms, 1, "ok 4/5 reset 1s"},
			{9500 * ms, 0, "ok 4/5 reset 1s"},
			{9500 * ms, 2, "ok 2/5 reset 3s"},
			{9500 * ms, 5, "refused 2/5 retry 3s reset 3s"},
			{15000 * ms, 6, "refused 5/5 retry never reset 0s"},
		}},
		{"scenario 7: one each two seconds", limiter.Every(2 * sec), 1, []step{
			{0, 1, "ok 0/1 reset 2s"}, {0, 1, "refused 0/1 retry 2s reset 2s"}, {2 * sec, 1, "ok 0/1 reset 2s"},
		}},
		{"scenario 9: less than a millisecond", limiter.Every(400 * time.Microsecond), 1, []step{
			{0, 1, "ok"}, {0, 1, "refused 0/1 retry 400µs reset 400µs"},
		}},
		{"scenario 12: a float trap", limiter.PerSecond(0.7692307692307693), 1, []step{
			{0, 1, "ok 0/1 reset 1.3s"}, {1300*ms - 1, 1, "refused"}, {1300 * ms, 1, "ok"},
		}},
		{"scenario 13: an overflow trap", limiter.PerSecond(1e-10), 1, []step{
			{0, 1, "ok"}, {0, 1, "refused"}, {30 * year, 1, "refused"},
		}},
		{"scenario 13: the slowest rate", limiter.PerSecond(math.SmallestNonzeroFloat64), 1, []step{
			{0, 1, "ok 0/1 reset never"},
			{0, 1, "refused 0/1 retry never reset never"},
			{math.MaxInt64, 1, "refused 0/1 retry never reset never"},
		}},
		{"scenario 15: the clock goes back", limiter.PerSecond(1), 5, []step{
			{2 * hour, 2, "ok 3/5 reset 2s"},
			{1 * hour, 1, "refused 0/5 retry 59m58s reset 1h0m2s"}, // too strict, but no token is lost:
			{2 * hour, 3, "ok 0/5 reset 5s"},
			{1 * hour, 1, "refused"},
			{2*hour + sec, 1, "ok 0/5 reset 5s"},
		}},
		{"scenario 18: peeks and nonsense change nothing", limiter.PerSecond(1), 2, []step{
			{0, 0, "ok 2/2 reset 0s"},
			{0, -1, "refused 2/2 retry never reset 0s"},
			{0, math.MinInt, "refused 2/2 retry never reset 0s"},
			{0, math.MaxInt, "refused 2/2 retry never reset 0s"},
			{0, 1, "ok 1/2 reset 1s"},
			{0, 0, "ok 1/2 reset 1s"},
			{0, -1, "refused 1/2 retry never reset 1s"},
			{0, 3, "refused 1/2 retry never reset 1s"},
			{0, 1, "ok 0/2 reset 2s"},
		}},
		{"the default burst is a second's worth", limiter.PerSecond(2.5), 0, []step{{0, 0, "ok 3/3 reset 0s"}}},
		{"the default burst is at least one", limiter.PerHour(5), 0, []step{{0, 0, "ok 1/1 reset 0s"}}},
		{"one a century", limiter.Every(100 * year), 5, []step{
			{0, 5, "ok"}, {50 * year, 1, "refused"}, {100*year - sec, 1, "refused"}, {100 * year, 1, "ok"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) { take(t, bucket(c.rate, c.burst), c.steps...) })
	}
}

// Scenario 6: redis-cell's `15 30 60` allows 16 requests, one more than its first number.
func TestTokenBucketAnswersLikeRedisCell(t *testing.T) {
	b := bucket(limiter.Per(30, time.Minute), 16)
	for i := range 16 {
		r := b.TakeAt(start, 1)
		require.Equal(t, limiter.Result{OK: true, Limit: 16, Remaining: 15 - i, ResetAfter: time.Duration(i+1) * 2 * sec}, r)
	}
	take(t, b,
		step{0, 1, "refused 0/16 retry 2s reset 32s"},
		step{500 * ms, 1, "refused 0/16 retry 1.5s reset 31.5s"},
		step{1999 * ms, 1, "refused 0/16 retry 1ms reset 30.001s"},
		step{2 * sec, 1, "ok 0/16 reset 32s"},
		step{2 * sec, 17, "refused 0/16 retry never reset 32s"},
		step{2 * sec, 16, "refused 0/16 retry 32s reset 32s"},
		step{10 * sec, 3, "ok 1/16 reset 30s"},
		step{60 * sec, 0, "ok 16/16 reset 0s"})
}

// Scenario 10.
func TestTokenBucketKeepsHighRates(t *testing.T) {
	for _, perSecond := range []float64{1e6, 2e6, 3e6 + 7, 1e9, 1234567890.123, 3e9, 3999999999.1234567, 4e9} {
		const burst, span = 4000, 10 * ms
		b, admitted := bucket(limiter.PerSecond(perSecond), burst), 0
		for at := time.Duration(0); at <= span; at += time.Microsecond {
			n := b.TakeAt(start.Add(at), 0).Remaining
			require.True(t, n == 0 || b.TakeAt(start.Add(at), n).OK, "%g/s: the remaining tokens can be taken", perSecond)
			admitted += n
		}
		expected := perSecond*span.Seconds() + burst
		require.InEpsilon(t, expected, admitted, 0.001, "%g/s", perSecond)
		require.LessOrEqual(t, float64(admitted), expected, "%g/s", perSecond)
	}
}

// Scenario 11.
func TestTokenBucketDoesNotDrift(t *testing.T) {
	for _, c := range []struct {
		rate   limiter.Rate
		events int
		in     time.Duration
	}{
		{limiter.PerSecond(3), 3 * 36000, 10 * hour},
		{limiter.PerMinute(7), 7 * 600, 10 * hour},
		{limiter.Per(10, 13*sec), 27690, 35997 * sec},
		{limiter.PerHour(1), 10, 10 * hour},
	} {
		b := bucket(c.rate, 4)
		admitted := offer(b, 10*c.events, c.in)
		require.InDelta(t, float64(c.events+4), float64(admitted), 1, c.rate)
		require.LessOrEqual(t, admitted, c.events+4, c.rate)
	}
}

// Scenario 12: requests at the exact rate are never refused, and nothing drifts in a year.
func TestTokenBucketAllowsTheExactRate(t *testing.T) {
	for _, rate := range []struct{ events, period int64 }{
		{3, int64(sec)}, {7, int64(sec)}, {1, int64(13 * ms)}, {1, int64(7 * sec)}, {1, int64(hour)}, {1000003, int64(sec)}, {10, int64(13 * sec)},
	} {
		r := limiter.Per(float64(rate.events), time.Duration(rate.period))
		due := func(k int64) time.Duration { // the time of the k-th token, rounded up
			whole, part := k/rate.events, k%rate.events
			return time.Duration(whole*rate.period + (part*rate.period+rate.events-1)/rate.events)
		}
		b := bucket(r, 1)
		for k := range int64(100_000) {
			require.True(t, b.TakeAt(start.Add(due(k)), 1).OK, "%s: call %d", r, k)
		}
		k := int64(year) / rate.period * rate.events
		b = limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: r, Burst: 1}, start)
		for i := range int64(1000) {
			at := start.Add(due(k + i))
			require.True(t, b.TakeAt(at, 1).OK, "%s: call %d after a year", r, i)
			require.False(t, b.TakeAt(at, 1).OK, "%s: a second call %d after a year", r, i)
		}
	}
}

// Scenario 14.
func TestTokenBucketNeverExceedsItsBurstWhenIdle(t *testing.T) {
	for _, idle := range []time.Duration{5 * year, 20 * year, math.MaxInt64} {
		for _, r := range []limiter.Rate{limiter.PerSecond(3), limiter.PerSecond(3e9), limiter.PerHour(1), limiter.PerSecond(1.9)} {
			b := bucket(r, 7)
			take(t, b, step{0, 7, "ok"}, step{0, 1, "refused"}, step{idle, 7, "ok"}, step{idle, 1, "refused"})
		}
	}
}

func TestTokenBucketWorksBeforeItsEpoch(t *testing.T) {
	for _, r := range []limiter.Rate{limiter.PerSecond(3), limiter.PerSecond(4)} {
		take(t, bucket(r, 2),
			step{-5 * year, 2, "ok"}, step{-5 * year, 1, "refused"},
			step{-5*year + sec, 2, "ok"}, step{math.MinInt64, 1, "refused"}, step{0, 2, "ok"})
	}
}

// Scenario 16.
func TestTimesThatGoBackAddNoTokens(t *testing.T) {
	b, admitted := bucket(limiter.PerSecond(10), 10), 0
	for i := range 1000 {
		if b.TakeAt(start.Add(time.Duration(i%2)*sec), 1).OK {
			admitted++
		}
	}
	require.LessOrEqual(t, admitted, 20)
}

// Scenario 17.
func TestTokenBucketNeverAllowsTooManyAtOnce(t *testing.T) {
	b := bucket(limiter.PerSecond(1), 5)
	require.Equal(t, 5, together(15, func() bool { return b.TakeAt(start, 1).OK }))

	b = bucket(limiter.PerSecond(100), 100)
	admitted := 0
	for i := range 5*500/8 + 1 {
		at := start.Add(time.Duration(i) * 16 * ms)
		admitted += together(8, func() bool { return b.TakeAt(at, 1).OK })
	}
	require.InDelta(t, 600, admitted, 1)
}

// Scenario 52.
func TestTokenBucketAllowsItsRateUnderLoad(t *testing.T) {
	require.InDelta(t, 1100, offer(bucket(limiter.PerSecond(100), 100), 10_000, 10*sec), 1)
}

func TestTokenBucketRefund(t *testing.T) {
	b := bucket(limiter.PerSecond(1), 5)
	take(t, b, step{0, 5, "ok"})
	b.Refund(2)
	b.Refund(0)
	b.Refund(-3)
	take(t, b, step{0, 3, "refused"}, step{0, 2, "ok 0/5 reset 5s"})
	b.Refund(math.MaxInt)
	b.Refund(math.MaxInt)
	take(t, b, step{0, 6, "refused"}, step{0, 5, "ok 0/5 reset 5s"}, step{sec, 1, "ok 0/5 reset 5s"})
}

// Stress on the real clock: no more tokens are taken than burst and rate allow.
func TestTokenBucketStress(t *testing.T) {
	for _, r := range []limiter.Rate{limiter.PerSecond(1e6), limiter.PerSecond(999_983)} {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: r, Burst: 100})
		began := time.Now()
		var admitted atomic.Int64
		together(8, func() bool {
			for i := range 20_000 {
				if n := 1 + i%3; b.Take(n).OK {
					admitted.Add(int64(n))
					if i%5 == 0 {
						b.Refund(n)
						admitted.Add(int64(-n))
					}
				}
			}
			return true
		})
		require.LessOrEqual(t, float64(admitted.Load()), 101+1e6*time.Since(began).Seconds())
		require.Positive(t, admitted.Load())
	}
}

func TestTokenBucketTakeAllocatesNothing(t *testing.T) {
	b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(7), Burst: 1000})
	at := time.Now()
	require.Zero(t, testing.AllocsPerRun(2000, func() { b.Take(1); b.Take(2000); b.TakeAt(at, 1); b.Refund(1) }))
}

func TestTokenBucketConfigNamesInvalidFields(t *testing.T) {
	good := limiter.TokenBucketConfig{Rate: limiter.PerSecond(1)}
	require.NoError(t, good.Validate())
	bad := limiter.TokenBucketConfig{Burst: -3, MaxWaiters: -1}
	want := "limiter: Rate is unset, must be above 0\n" +
		"limiter: Burst is -3, must be at least 1 (or 0 for the default, or Off)\n" +
		"limiter: MaxWaiters is -1, must be at least 1 (or 0 for no bound)"
	require.EqualError(t, bad.Validate(), want)
	require.PanicsWithError(t, want, func() { limiter.NewTokenBucket(bad) })
	require.PanicsWithError(t, want, func() { limiter.NewTokenBucketAt(bad, start) })
}

// together calls f on n goroutines at once and returns how many times it returned true.
func together(n int, f func() bool) int {
	var yes atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if f() {
				yes.Add(1)
			}
		})
	}
	all.Wait()
	return int(yes.Load())
}

// TakeFast takes only if TakeAt would, and otherwise changes nothing.
func TestTakeFastDecidesLikeTakeAt(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	admitted := 0
	for _, rate := range []limiter.Rate{limiter.PerSecond(10), limiter.PerSecond(3), limiter.PerMinute(7), limiter.Unlimited()} {
		take, admit := bucket(rate, 5), bucket(rate, 5)
		at := start
		for range 5000 {
			at = at.Add(time.Duration(r.IntN(400)-20) * ms)
			n := r.IntN(9) - 1
			want := take.TakeAt(at, n)
			if admit.TakeFast(at.Sub(start), n) {
				require.True(t, want.OK)
				admitted++
			} else {
				require.Equal(t, want, admit.TakeAt(at, n))
			}
			switch r.IntN(50) {
			case 0:
				take.Refund(1)
				admit.Refund(1)
			case 1:
				burst := 1 + r.IntN(9)
				require.NoError(t, take.SetBurstAt(at, burst))
				require.NoError(t, admit.SetBurstAt(at, burst))
			}
			require.InDelta(t, take.TokensAt(at), admit.TokensAt(at), 0)
		}
	}
	require.Greater(t, admitted, 1000, "TakeFast decides most requests")
	b := bucket(limiter.PerHour(1), 1<<30)
	require.Zero(t, testing.AllocsPerRun(100, func() { b.TakeFast(0, 1); b.TakeFast(0, math.MaxInt32) }))
}

func TestTakeFastRefusesWhileACallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 3})
		l := newCallers(t, b)
		b.Take(2)
		l.start(t.Context(), "two", 2)
		require.False(t, b.TakeFast(0, 1), "the one token is for the waiter")
		require.Equal(t, "refused 0/3 retry 2s reset 4s", show(b.Take(1)))
		l.want(arrival{"two", sec, nil})
	})
}
