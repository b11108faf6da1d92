package fleet_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
)

// settled lists limits of 60 tokens per minute. A reservation of 10 costs 100 in the end, so there
// is a debt of 40. A bucket and a fixed window pay it at the rate; the others count it for a
// window.
var settled = map[string]struct {
	limits []fleet.Limit
	delay  time.Duration // until there is one token
	held   string
}{
	"bucket":          {[]fleet.Limit{fleet.TokenBucket{Rate: limiter.PerMinute(60), Burst: 60}}, 41 * time.Second, "1767225700000000 0 1000000 0 1 0101"},
	"bucket of parts": {[]fleet.Limit{fleet.TokenBucket{Rate: limiter.Per(59, 59*time.Second+1), Burst: 60}}, 41*time.Second + us, "1767225700000000 100 1000000 1 59000 0101"},
	"fixed":           {[]fleet.Limit{fleet.FixedWindow{Limit: 60, Window: time.Minute}}, time.Minute, "f1767225600000000 0100"},
	"sliding":         {[]fleet.Limit{fleet.SlidingWindow{Limit: 60, Window: time.Minute}}, 66 * time.Second, "w6000000 294537600:100"},
	"log":             {[]fleet.Limit{fleet.SlidingLog{Limit: 60, Window: time.Minute}}, time.Minute, ""},
	"quota":           {[]fleet.Limit{fleet.CalendarQuota{Limit: 60, Every: quota.Day}}, 24 * time.Hour, "q1767225600000000 1767312000000000 100"},
	"throttle":        {[]fleet.Limit{rediscell.Limit(59, 60, time.Minute)}, 41 * time.Second, "1767225700000000000"},
	"several": {[]fleet.Limit{
		fleet.TokenBucket{Rate: limiter.PerMinute(600), Burst: 600},
		fleet.TokenBucket{Rate: limiter.PerMinute(60), Burst: 60},
		fleet.Shared{Limit: fleet.FixedWindow{Limit: 1000, Window: time.Hour}},
	}, 41 * time.Second, "1767225610000000 0 100000 0 1 600"},
}

func TestWhatIsUsedBeyondAReservationDelaysLaterRequests(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	for name, c := range settled {
		t.Run(name, func(t *testing.T) {
			b := newLimiters(l, "settled "+name, errorOnOutage, c.limits...)
			take := func(at time.Duration, n int) limiter.Result {
				r, err := b.TakeAt(t.Context(), testStart.Add(at), "user", n)
				require.NoError(t, err)
				return r.Result
			}
			require.True(t, take(0, 10).OK)
			for range 3 {
				require.NoError(t, b.SettleAt(t.Context(), testStart, 0, "user", "one", 90))
			}
			if c.held != "" {
				require.Equal(t, c.held, direct.Get(t.Context(), b.StateKeys("user")[0]).Val())
			}
			for n, delay := range map[int]time.Duration{0: c.delay - time.Second, 1: c.delay} {
				r := take(0, n)
				require.False(t, r.OK, n)
				require.Zero(t, r.Remaining, n)
				if name != "fixed" && name != "log" && name != "sliding" && name != "quota" {
					require.Equal(t, delay, r.RetryAfter, n)
				}
			}
			require.Equal(t, c.delay, take(0, 1).RetryAfter)
			require.False(t, take(c.delay-us, 1).OK)
			require.True(t, take(c.delay, 1).OK)
		})
	}
}

func TestAFixedWindowPaysADebtByOneLimitPerWindow(t *testing.T) {
	b := newLimiter(connect(t), "windows", fleet.FixedWindow{Limit: 10, Window: time.Second}, errorOnOutage)
	take := func(at time.Duration, n int) limiter.Result {
		r, err := b.TakeAt(t.Context(), testStart.Add(at), "user", n)
		require.NoError(t, err)
		return r.Result
	}
	require.True(t, take(0, 1).OK)
	require.NoError(t, b.SettleAt(t.Context(), testStart, 0, "user", "one", 34))
	require.Equal(t, 3*time.Second, take(0, 1).RetryAfter)
	require.Equal(t, 4*time.Second, take(0, 6).RetryAfter)
	require.Equal(t, 4*time.Second, take(0, 0).ResetAfter)
	require.Equal(t, 2*time.Second, take(time.Second, 1).RetryAfter)
	require.NoError(t, b.SettleAt(t.Context(), testStart.Add(time.Second), 0, "user", "two", -1))
	require.False(t, take(3*time.Second-us, 1).OK)
	require.Equal(t, 6, take(3*time.Second, 0).Remaining)
	require.True(t, take(3*time.Second, 6).OK)
	require.True(t, take(4*time.Second, 10).OK, "the debt was paid")
}

// Tokens that were not used come back, and later calls do nothing.
func TestSettleInBothDirections(t *testing.T) {
	for linkName, link := range sharedLinks(t) {
		for name, c := range settled {
			t.Run(linkName+" "+name, func(t *testing.T) {
				b := newLimiters(link, "both "+name, fleet.Config{OnOutage: fleet.FailError}, c.limits...)
				left := func() int {
					r, err := b.Take(t.Context(), "user", 0)
					require.NoError(t, err)
					return r.Remaining
				}
				settle := func(reserved, refunded int, all ...int) {
					t.Helper()
					require.NoError(t, b.Reset(t.Context(), "user"))
					r, err := b.Reserve(t.Context(), "user", reserved)
					require.NoError(t, err)
					require.NoError(t, r.Refund(t.Context(), refunded))
					for _, n := range all {
						require.NoError(t, r.Settle(t.Context(), n))
						require.NoError(t, r.Refund(t.Context(), 10))
					}
				}
				settle(20, 0, 20, 0, 60)
				require.InDelta(t, 40, left(), 2)
				settle(20, 0, 10, 0, 60)
				require.InDelta(t, 50, left(), 2)
				settle(20, 0, -5, 60)
				require.InDelta(t, 60, left(), 2)
				settle(20, 15, 5, 60)
				require.InDelta(t, 55, left(), 2)
				settle(20, 15, 30, 5)
				require.InDelta(t, 30, left(), 2)
				settle(0, 0, 30)
				require.InDelta(t, 30, left(), 2)
				settle(61, 0, 30)
				require.InDelta(t, 60, left(), 2, "it was refused")
				settle(20, 0, 100, 0)
				require.Zero(t, left())
				r, err := b.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				require.False(t, r.OK)
			})
		}
	}
}

// mostCharged is the most tokens that one settlement of a bucket can take.
const mostCharged = min(1<<40, math.MaxInt)

// A settlement that is too large changes nothing, and the reservation can be settled otherwise.
func TestSettleForMoreThanCanBeCharged(t *testing.T) {
	l := connect(t)
	for name, c := range settled {
		b := newLimiters(l, "huge "+name, errorOnOutage, c.limits...)
		r, err := b.Reserve(t.Context(), "user", 10)
		require.NoError(t, err)
		most := math.MaxInt32
		if _, bucket := c.limits[0].(fleet.TokenBucket); bucket && name != "several" || name == "throttle" {
			most = mostCharged
		}
		require.ErrorContains(t, r.Settle(t.Context(), most+11), "more than were reserved", name)
		require.ErrorContains(t, r.Settle(t.Context(), math.MaxInt), "more than were reserved", name)
		require.NoError(t, r.Refund(t.Context(), 5))
		require.NoError(t, r.Settle(t.Context(), 10), name)
		left, err := b.Take(t.Context(), "user", 0)
		require.NoError(t, err)
		require.InDelta(t, 50, left.Remaining, 1, name)
	}
}

// gone returns a context that has ended.
func gone(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestSettleAgainAfterTheContextHasEnded(t *testing.T) {
	b := newLimiter(connect(t), "gone", fleet.FixedWindow{Limit: 60, Window: 24 * 365 * time.Hour}, errorOnOutage)
	r, err := b.Reserve(t.Context(), "user", 10)
	require.NoError(t, err)
	require.ErrorIs(t, r.Settle(gone(t), 40), context.Canceled)
	require.NoError(t, r.Refund(t.Context(), 10), "does nothing")
	require.NoError(t, r.Settle(t.Context(), 5), "settles 40")
	left, err := b.Take(t.Context(), "user", 0)
	require.NoError(t, err)
	require.Equal(t, 20, left.Remaining)
}

// A debt is paid in full after a change of the rate or the burst, and in a node of another rate.
func TestADebtOutlivesAChangeOfTheLimit(t *testing.T) {
	l := connect(t)
	for name, c := range map[string]struct {
		before, after fleet.Limit
		delay         time.Duration
	}{
		"slower":         {perHour(60, 60), perHour(30, 60), 82 * time.Minute},
		"faster":         {perHour(60, 60), perHour(120, 60), 20*time.Minute + 30*time.Second},
		"smaller":        {perHour(60, 60), perHour(60, 10), 91 * time.Minute},
		"both":           {perHour(60, 60), perHour(120, 10), 45*time.Minute + 30*time.Second},
		"of parts":       {perHour(60, 60), fleet.TokenBucket{Rate: limiter.Per(59, time.Hour+1), Burst: 60}, 41*3600*time.Second/59 + 2*us},
		"smaller window": {fleet.FixedWindow{Limit: 60, Window: time.Hour}, fleet.FixedWindow{Limit: 45, Window: time.Hour}, 2 * time.Hour},
		"larger window":  {fleet.FixedWindow{Limit: 60, Window: time.Hour}, fleet.FixedWindow{Limit: 100, Window: time.Hour}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := newLimiter(l, "change "+name, c.before, errorOnOutage), newLimiter(l, "change "+name, c.after, errorOnOutage)
			require.NoError(t, before.SettleAt(t.Context(), testStart, 0, "user", "one", 100))
			for range 2 {
				r, err := after.TakeAt(t.Context(), testStart, "user", 1)
				require.NoError(t, err)
				require.False(t, r.OK)
				require.InDelta(t, c.delay, r.RetryAfter, float64(2*us))
			}
			for _, early := range []time.Duration{2 * us, 0} {
				r, err := after.TakeAt(t.Context(), testStart.Add(c.delay-early), "user", 1)
				require.NoError(t, err)
				require.Equal(t, early == 0, r.OK, "%+v", r)
			}
		})
	}
}

func perHour(n, burst int) fleet.TokenBucket {
	return fleet.TokenBucket{Rate: limiter.Per(float64(n), time.Hour), Burst: burst}
}

// A missing burst that is no debt is cut to the smaller burst when the rate changes.
func TestTokensOfALargerBurstAreNoDebt(t *testing.T) {
	l := connect(t)
	before, after := newLimiter(l, "no debt", perHour(60, 60), errorOnOutage), newLimiter(l, "no debt", perHour(1, 1), errorOnOutage)
	requireTake(t, taken, before.Take, "user", 50)
	require.NoError(t, reserve(t, before, "user", 1).Settle(t.Context(), 10))
	r, err := after.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.LessOrEqual(t, r.RetryAfter, time.Hour)
}

// The clock of Redis was ahead when a debt was charged. After it has gone back, the debt counts in
// full from then on, and no longer than it takes to pay.
func TestADebtOutlivesAClockThatGoesBack(t *testing.T) {
	l := connect(t)
	for name, c := range settled {
		if name == "throttle" { // see TestACellIsBlockedUntilItsResetAfterTheClockWasAhead
			continue
		}
		for _, ahead := range []time.Duration{time.Second, time.Minute, 24 * 365 * time.Hour} {
			t.Run(name+" "+ahead.String(), func(t *testing.T) {
				t.Parallel()
				b, key := newLimiters(l, "ahead "+name, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off}, c.limits...), newKey()
				began := time.Now()
				r, err := b.TakeAt(t.Context(), began.Add(ahead), key, 10)
				require.NoError(t, err)
				require.True(t, r.OK)
				require.NoError(t, b.SettleAt(t.Context(), began.Add(ahead), 0, key, "one", 90))
				least, most := 40*time.Second, 102*time.Second
				switch name {
				case "fixed":
					// the debt ends with this window or the next
					least, most = 0, 2*time.Minute+time.Second
				case "sliding", "log":
					least, most = time.Minute, 2*time.Minute+13*time.Second
				case "quota":
					// the debt ends with this day or the next
					least, most = 0, 48*time.Hour
				}
				for range 2 {
					r, err = b.Take(t.Context(), key, 1)
					require.NoError(t, err)
					require.False(t, r.OK)
					require.GreaterOrEqual(t, r.RetryAfter, least-time.Since(began))
					require.LessOrEqual(t, r.RetryAfter, most)
				}
			})
		}
	}
}

// The largest debts are cut to 50 years, and later requests and settlements find no foreign value.
func TestADebtForEver(t *testing.T) {
	l := connect(t)
	const years = 365 * 24 * time.Hour
	for name, limit := range map[string]fleet.Limit{
		"bucket": perHour(60, 60), "slowest": fleet.TokenBucket{Rate: limiter.Per(1, 50*years), Burst: 1}, "slow": fleet.TokenBucket{Rate: limiter.Per(1, 9*years), Burst: 5},
		"fastest": fleet.TokenBucket{Rate: limiter.PerSecond(1e9), Burst: mostCharged}, "parts": fleet.TokenBucket{Rate: limiter.Per(3, time.Second+1), Burst: 1 << 30},
		"third": fleet.TokenBucket{Rate: limiter.Per(3, time.Microsecond), Burst: 10},
		"fixed": fleet.FixedWindow{Limit: 1, Window: time.Hour}, "fixed, slow": fleet.FixedWindow{Limit: 2, Window: 10 * years}, "fixed, large": fleet.FixedWindow{Limit: math.MaxInt32, Window: 10 * years},
		"sliding": fleet.SlidingWindow{Limit: 1, Window: 10 * years}, "log": fleet.SlidingLog{Limit: 1, Window: 10 * years}, "log, large": fleet.SlidingLog{Limit: math.MaxInt32, Window: time.Hour},
		"quota": dailyQuota(1), "quota, large": dailyQuota(math.MaxInt32),
		"cell": rediscell.Limit(0, 1, 9*years), "quick cell": rediscell.Limit(9, 1000, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimiter(l, "forever "+name, limit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
			for i, n := range []int{1, math.MaxInt32, mostCharged, 1, math.MaxInt32, mostCharged} {
				require.NoError(t, b.SettleAt(t.Context(), time.Time{}, 0, "user", strconv.Itoa(i), n))
				r, err := b.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				require.LessOrEqual(t, max(r.RetryAfter, r.ResetAfter), 51*years)
				if i > 1 {
					require.False(t, r.OK)
					require.Zero(t, r.Remaining)
				}
			}
			require.NoError(t, b.SettleAt(t.Context(), time.Time{}, 0, "user", "back", -1))
		})
	}
}

// The keys of a debt live as long as it takes to pay it.
func TestADebtIsPaidInTime(t *testing.T) {
	const span = 300 * ms
	l := connect(t)
	for name, c := range map[string]struct {
		limit fleet.Limit
		least time.Duration
	}{
		"bucket":          {fleet.TokenBucket{Rate: limiter.Per(10, span), Burst: 10}, 26 * span / 10},
		"bucket of parts": {fleet.TokenBucket{Rate: limiter.Per(10, span+1), Burst: 10}, 26 * span / 10},
		"fixed":           {fleet.FixedWindow{Limit: 10, Window: span}, 2 * span},
		"sliding":         {fleet.SlidingWindow{Limit: 10, Window: span}, span},
		"log":             {fleet.SlidingLog{Limit: 10, Window: span}, span},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newLimiter(l, "in time "+name, c.limit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
			began := time.Now()
			r := reserve(t, b, "user", 5)
			require.NoError(t, r.Settle(t.Context(), 35))
			charged := time.Now()
			// Wait would ask only when the tokens should be there
			requireSoon(t, func() bool {
				r, err := b.Take(t.Context(), "user", 1)
				require.NoError(t, err)
				return r.OK
			})
			require.GreaterOrEqual(t, time.Since(began), c.least-5*ms) // since the reservation
			require.Less(t, time.Since(charged), 4*span+timeoutSlack)
		})
	}
}
