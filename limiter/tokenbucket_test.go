package limiter_test

import (
	"math"
	"testing"
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

// tokenBucketCases are requests to buckets and the answers. The numbers are those of the project's
// list of scenarios.
var tokenBucketCases = []struct {
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
	{"scenario 4: nothing is allowed", limiter.PerSecond(1), limiter.Off, []step{
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
	{"scenario 7: one each two seconds", limiter.Per(1, 2*sec), 1, []step{
		{0, 1, "ok 0/1 reset 2s"}, {0, 1, "refused 0/1 retry 2s reset 2s"}, {2 * sec, 1, "ok 0/1 reset 2s"},
	}},
	{"scenario 9: less than a millisecond", limiter.Per(1, 400*time.Microsecond), 1, []step{
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
	{"the default burst is at least one", limiter.Per(5, time.Hour), 0, []step{{0, 0, "ok 1/1 reset 0s"}}},
	{"one a century", limiter.Per(1, 100*year), 5, []step{
		{0, 5, "ok"}, {50 * year, 1, "refused"}, {100*year - sec, 1, "refused"}, {100 * year, 1, "ok"},
	}},
}

func TestTokenBucketSteps(t *testing.T) {
	for _, c := range tokenBucketCases {
		t.Run(c.name, func(t *testing.T) { runSteps(t, newBucket(c.rate, c.burst), c.steps...) })
	}
}

// Scenario 6: redis-cell's `15 30 60` allows 16 requests, one more than its first number.
func TestTokenBucketAnswersLikeRedisCell(t *testing.T) {
	b := newBucket(limiter.Per(30, time.Minute), 16)
	for i := range 16 {
		r := b.TakeAt(start, 1)
		require.Equal(t, limiter.Result{OK: true, Limit: 16, Remaining: 15 - i, ResetAfter: time.Duration(i+1) * 2 * sec}, r)
	}
	runSteps(t, b,
		step{0, 1, "refused 0/16 retry 2s reset 32s"},
		step{500 * ms, 1, "refused 0/16 retry 1.5s reset 31.5s"},
		step{1999 * ms, 1, "refused 0/16 retry 1ms reset 30.001s"},
		step{2 * sec, 1, "ok 0/16 reset 32s"},
		step{2 * sec, 17, "refused 0/16 retry never reset 32s"},
		step{2 * sec, 16, "refused 0/16 retry 32s reset 32s"},
		step{10 * sec, 3, "ok 1/16 reset 30s"},
		step{60 * sec, 0, "ok 16/16 reset 0s"})
}

func TestTokenBucketWorksBeforeItsEpoch(t *testing.T) {
	for _, r := range []limiter.Rate{limiter.PerSecond(3), limiter.PerSecond(4)} {
		runSteps(t, newBucket(r, 2),
			step{-5 * year, 2, "ok"}, step{-5 * year, 1, "refused"},
			step{-5*year + sec, 2, "ok"}, step{math.MinInt64, 1, "refused"}, step{0, 2, "ok"})
	}
}

// Scenario 16.
func TestTimesThatGoBackAddNoTokens(t *testing.T) {
	b, allowed := newBucket(limiter.PerSecond(10), 10), 0
	for i := range 1000 {
		if b.TakeAt(start.Add(time.Duration(i%2)*sec), 1).OK {
			allowed++
		}
	}
	require.LessOrEqual(t, allowed, 20)
}

func TestTokenBucketRefund(t *testing.T) {
	b := newBucket(limiter.PerSecond(1), 5)
	runSteps(t, b, step{0, 5, "ok"})
	b.Refund(2)
	b.Refund(0)
	b.Refund(-3)
	runSteps(t, b, step{0, 3, "refused"}, step{0, 2, "ok 0/5 reset 5s"})
	b.Refund(math.MaxInt)
	b.Refund(math.MaxInt)
	runSteps(t, b, step{0, 6, "refused"}, step{0, 5, "ok 0/5 reset 5s"}, step{sec, 1, "ok 0/5 reset 5s"})
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
