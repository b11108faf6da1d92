package quota_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/limitertest"
	"github.com/weir-go/weir/limiter/quota"
)

const hour, day = time.Hour, 24 * time.Hour

// noon is a time on a Wednesday.
var noon = time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)

func daily(limit int) *quota.Group { return quota.New(quota.Config{Limit: limit, Every: quota.Day}) }

func TestConformance(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for name, c := range map[string]quota.Config{
		"day": {Limit: 5, Every: quota.Day}, "week": {Limit: 3, Every: quota.Week, Zone: berlin}, "month": {Limit: 7, Every: quota.Month, Zone: berlin},
	} {
		shortest := map[quota.Period]time.Duration{quota.Day: 23 * hour, quota.Week: 7*day - hour, quota.Month: 28*day - hour}[c.Every]
		t.Run(name, func(t *testing.T) {
			limitertest.Run(t, limitertest.Subject{
				New:   func(time.Time) limiter.TimedLimiter { return quota.New(c).Get("") },
				Limit: c.Limit,
				Most:  func(d time.Duration) int { return c.Limit * (2 + int(d/shortest)) },
				Exact: true, Step: shortest / 4, Seeds: testenv.Repeat(12, 4),
			})
		})
	}
}

// steps take tokens of the key "" at times after noon.
type step struct {
	at   time.Duration
	n    int
	want limiter.Result
}

func runSteps(t *testing.T, g *quota.Group, steps ...step) {
	t.Helper()
	for _, s := range steps {
		require.Equal(t, s.want, g.Get("").TakeAt(noon.Add(s.at), s.n), "Take(%d) at %s", s.n, s.at)
	}
}

func TestAQuotaLastsUntilTheEndOfTheDay(t *testing.T) {
	runSteps(
		t, daily(3),
		step{0, 0, limiter.Result{OK: true, Limit: 3, Remaining: 3}},
		step{0, 2, limiter.Result{OK: true, Limit: 3, Remaining: 1, ResetAfter: 12 * hour}},
		step{hour, 2, limiter.Result{Limit: 3, Remaining: 1, RetryAfter: 11 * hour, ResetAfter: 11 * hour}},
		step{hour, 4, limiter.Result{Limit: 3, Remaining: 1, RetryAfter: limiter.Never, ResetAfter: 11 * hour}},
		step{hour, -1, limiter.Result{Limit: 3, Remaining: 1, RetryAfter: limiter.Never, ResetAfter: 11 * hour}},
		step{2 * hour, 1, limiter.Result{OK: true, Limit: 3, ResetAfter: 10 * hour}},
		step{12*hour - 1, 1, limiter.Result{Limit: 3, RetryAfter: 1, ResetAfter: 1}},
		// nothing is carried over
		step{12 * hour, 3, limiter.Result{OK: true, Limit: 3, ResetAfter: day}},
		step{10 * day, 3, limiter.Result{OK: true, Limit: 3, ResetAfter: 12 * hour}},
	)
}

func TestADebtCountsInItsPeriodOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := daily(10)
		k := g.Get("")
		k.Charge(0)
		k.Charge(-5)
		require.Equal(t, 10, k.Take(0).Remaining)
		r := limiter.Reserve(k, 8)
		r.Settle(13)
		require.Equal(t, limiter.Result{Limit: 10, RetryAfter: day, ResetAfter: day}, k.Take(0), "three are owed")
		began := time.Now()
		k.Refund(began, 3)
		require.Equal(t, limiter.Result{OK: true, Limit: 10, ResetAfter: day}, k.Take(0))
		k.Charge(math.MaxInt)
		k.Charge(math.MaxInt)
		time.Sleep(day - 1)
		require.False(t, k.Take(1).OK)
		time.Sleep(time.Nanosecond)
		require.Equal(t, 10, k.Take(0).Remaining)
		late := limiter.Reserve(k, 8)
		time.Sleep(day)
		late.Settle(13)
		require.Equal(t, 5, k.Take(0).Remaining, "an overrun counts when it was used")
	})
}

func TestARefundOfAnEarlierPeriodGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := daily(10).Get("")
		before := limiter.Reserve(k, 4)
		other := limiter.Reserve(k, 4)
		other.Refund(1)
		require.Equal(t, 3, k.Take(0).Remaining)
		time.Sleep(day)
		require.True(t, k.Take(6).OK)
		before.Refund(4)
		other.Settle(0)
		require.Equal(t, 4, k.Take(0).Remaining)
		now := limiter.Reserve(k, 4)
		now.Settle(1)
		require.Equal(t, 3, k.Take(0).Remaining)
		k.Refund(time.Now(), math.MaxInt)
		k.Refund(time.Now(), -1)
		require.Equal(t, limiter.Result{OK: true, Limit: 10, Remaining: 10}, k.Take(0))
	})
}

// A clock that is wrong for a while gives no key more than one additional quota, and locks no key
// out for longer than the period after the present one.
func TestAClockThatIsSetBack(t *testing.T) {
	for _, c := range []struct {
		what        string
		ahead, back time.Duration
		n           int // Remaining of 3, after 1 was taken before, 1 meanwhile
		reset       time.Duration
	}{
		{"within the day", hour, hour, 1, 12 * hour},
		{"over midnight: the next day goes on", 13 * hour, 13 * hour, 2, 36 * hour},
		{"over a day and midnight: the next day goes on", 35 * hour, 35 * hour, 2, 36 * hour},
		{"over two days: what was used meanwhile counts today", 37 * hour, 37 * hour, 2, 12 * hour},
		{"years", 30 * 365 * day, 30 * 365 * day, 2, 12 * hour},
	} {
		t.Run(c.what, func(t *testing.T) {
			g := daily(3)
			at := noon
			g.ClockShows(at)
			require.True(t, g.Get("").TakeAt(at, 1).OK)
			at = at.Add(c.ahead)
			g.ClockShows(at)
			require.True(t, g.Get("").TakeAt(at, 1).OK)
			at = at.Add(-c.back)
			g.ClockShows(at)
			r := g.Get("").TakeAt(at, 0)
			require.Equal(t, c.n, r.Remaining)
			require.Equal(t, c.reset, r.ResetAfter)
		})
	}
}

// Times that a caller gives say nothing about the clock.
func TestAnEarlierTimeNeverAddsTokens(t *testing.T) {
	k := daily(1).Get("")
	require.True(t, k.TakeAt(noon, 1).OK)
	for _, ago := range []time.Duration{day, 10 * day, 36 * 365 * day} {
		r := k.TakeAt(noon.Add(-ago), 1)
		require.Equal(t, limiter.Result{Limit: 1, RetryAfter: ago + 12*hour, ResetAfter: ago + 12*hour}, r)
	}
	r := k.TakeAt(time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), 1)
	require.False(t, r.OK)
	require.NotEqual(t, limiter.Never, r.RetryAfter)
	require.False(t, k.TakeAt(noon, 1).OK)
}

var variable = daily(2)

func TestAPackageVariableStartsAgainInEachBubble(t *testing.T) {
	for range 3 {
		require.True(t, variable.Get("").Take(1).OK)
		synctest.Test(t, func(t *testing.T) {
			require.True(t, variable.Get("").Take(2).OK)
			require.False(t, variable.Get("").Take(1).OK)
			time.Sleep(day)
			require.True(t, variable.Get("").Take(2).OK)
			require.False(t, limiter.Reserve(variable.Get(""), 1).OK)
		})
		require.True(t, limiter.Reserve(variable.Get(""), 1).OK)
	}
}

func TestKeysHaveTheirOwnQuotas(t *testing.T) {
	g := daily(1)
	for _, key := range []string{"", "a", "b", strings.Repeat("x", 1<<16), "\xff", "\xfe"} {
		require.True(t, g.Get(key).TakeAt(noon, 1).OK)
		require.False(t, g.Get(key).TakeAt(noon, 1).OK)
	}
	require.True(t, g.Forget("\xff"))
	require.False(t, g.Forget("\xff"))
	require.True(t, g.Get("\xff").TakeAt(noon, 1).OK)
	require.False(t, g.Get("\xfe").TakeAt(noon, 1).OK)
}

func TestAFullGroupRefusesNewKeysUntilTheNextPeriod(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	synctest.Test(t, func(t *testing.T) {
		g := quota.New(quota.Config{Name: "q", Limit: 5, Every: quota.Day, MaxKeys: 2})
		require.True(t, g.Get("a").Take(1).OK)
		require.True(t, g.Get("b").Take(1).OK)
		time.Sleep(hour)
		want := limiter.Result{NoRoom: true, Limit: 5, RetryAfter: 23 * hour}
		for range 3 {
			require.Equal(t, want, g.Get("c").Take(1))
		}
		require.Equal(t, limiter.Never, g.Get("c").Take(6).RetryAfter)
		require.True(t, g.Get("a").Take(4).OK, "keys in use are not refused")
		err := limiter.NewJoint("j", g.Get("c")).Wait(t.Context(), 1)
		require.EqualError(t, err, "limiter j: no room for the key: MaxKeys is 2 (limit 5), retry in 23h0m0s")
		metrics := metricsOf(g)
		require.Equal(t, 2.0, metrics["group.size"])
		require.Positive(t, metrics["no_room"])
		require.Equal(t, 1, strings.Count(log.String(), "no room"), "logged once: %s", log.String())
		g.Get("b").Refund(time.Now(), 1)
		require.True(t, g.Get("c").Take(1).OK, "b has used nothing")
		g.Get("debtor").Charge(1)
		require.Equal(t, 4, g.Get("debtor").Take(0).Remaining, "a debt is never lost")
		time.Sleep(23 * hour)
		require.True(t, g.Get("d").Take(1).OK)
		require.True(t, g.Get("c").Take(1).OK)
		require.True(t, g.Get("a").Take(1).NoRoom)
		require.Equal(t, 2, strings.Count(log.String(), "no room"), log.String())
	})
}

// metricsOf returns the metrics of a group, without outcomes that did not occur.
func metricsOf(g *quota.Group) map[string]float64 {
	all := map[string]float64{}
	for s, v := range g.Observe {
		name := strings.TrimPrefix(s.Instrument.Name, "weir.limiter.")
		if outcome := strings.Join(s.Values[1:], " "); outcome == "" || v > 0 {
			all[strings.TrimSpace(name+" "+outcome)] = v
		}
	}
	return all
}

func TestEachRequestIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quota.New(quota.Config{Name: "q", Limit: 10, Every: quota.Day, ShowKeys: true})
		k := g.Get("")
		require.True(t, k.Take(1).OK)
		k.Take(0)
		require.True(t, limiter.Reserve(k, 2).OK)
		log := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 4, Window: time.Minute})
		both := limiter.NewJoint("", k, log)
		require.True(t, both.Take(4).OK)
		require.False(t, both.Take(1).OK, "refused by the other")
		require.Equal(t, limiter.Stats{Allowed: 3}, g.Stats())
		require.False(t, k.Take(4).OK)
		time.Sleep(time.Minute)
		require.False(t, both.Take(4).OK)
		require.False(t, limiter.Reserve(both, 4).OK)
		require.Equal(t, limiter.Stats{Allowed: 3, Refused: 3}, g.Stats())
		began := time.Now()
		require.NoError(t, limiter.NewJoint("", k).Wait(t.Context(), 4))
		require.Equal(t, day-time.Minute, time.Since(began), "a Joint waits for the next day")
		require.Equal(t, int64(4), g.Stats().Allowed)
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, limiter.NewJoint("", k, log).Wait(soon, 7), limiter.ErrLimited)
		require.Equal(t, limiter.Stats{Allowed: 4, Refused: 4}, g.Stats())
		require.Equal(t, map[string]float64{
			"requests allowed": 4, "requests refused": 4, "tokens allowed": 11, "tokens refused": 19,
			"near_limit": 0, "waiting": 0, "limit": 10, "period": 86400, "available": 6, "group.size": 1, "no_room": 0,
		}, metricsOf(g))
		require.Equal(t, []limiter.BusyKey{{Limiter: "q", Key: "(empty)", AtLeast: 1, AtMost: 1}}, g.Busiest(3), "those of the last minutes")
		time.Sleep(day)
		require.Equal(t, []float64{10, 0}, []float64{metricsOf(g)["available"], metricsOf(g)["group.size"]})
	})
}

func TestShadowRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quota.New(quota.Config{Name: "q", Limit: 2, Every: quota.Day, Shadow: true})
		k := g.Get("a")
		require.True(t, k.Take(2).OK)
		require.Equal(t, limiter.Result{OK: true, Limit: 2, RetryAfter: day, ResetAfter: day}, k.Take(1))
		r := limiter.Reserve(k, 1)
		require.True(t, r.OK)
		r.Refund(1)
		require.Zero(t, k.Take(0).Remaining, "nothing was taken")
		require.True(t, limiter.NewJoint("", k, limiter.NewFixedWindow(limiter.WindowConfig{Limit: 1, Window: hour})).Take(1).OK)
		require.Equal(t, limiter.Stats{Allowed: 1, Shadowed: 3, Near: 1}, g.Stats())
	})
}

// embedding is a limiter of a user that embeds a quota.
type embedding struct{ quota.Keyed }

func (embedding) Take(int) limiter.Result              { return limiter.Result{} }
func (embedding) TakeAt(time.Time, int) limiter.Result { return limiter.Result{} }

func TestATypeThatEmbedsAQuotaIsUsedItself(t *testing.T) {
	require.False(t, limiter.Reserve(embedding{daily(1).Get("")}, 1).OK)
}

func TestValidateNamesAllFaults(t *testing.T) {
	c := quota.Config{Limit: -1, Every: "year", MaxKeys: -2, Shadow: true, ShowKeys: true}
	require.EqualError(t, c.Validate(), strings.Join([]string{
		`quota: Limit is -1, must be between 1 and 2147483647`,
		`quota: Every is "year", must be "day", "week" or "month"`,
		`quota: MaxKeys is -2, must be at least 1 (or 0 for the default)`,
		`quota: Shadow is set without a Name, must have both`,
		`quota: ShowKeys is set without a Name, must have both`,
	}, "\n"))
	require.PanicsWithError(t, c.Validate().Error(), func() { quota.New(c) })
}

func TestAGroupWithoutANameHasNoStatistics(t *testing.T) {
	g := daily(1)
	g.Get("").Take(2)
	require.Empty(t, g.Name())
	require.Zero(t, g.Stats())
	require.Empty(t, g.Busiest(3))
	require.Empty(t, metricsOf(g))
	require.NoError(t, g.Close())
	require.NoError(t, g.Err())
}

// Many goroutines use a group over many days.
func TestManyCallersAtOnce(t *testing.T) {
	const limit = 50
	g := quota.New(quota.Config{Name: "q", Limit: limit, Every: quota.Day, MaxKeys: 3})
	require.NoError(t, g.Open(t.TempDir()+"/quota"))
	var today atomic.Int64
	var allowed [20][4]atomic.Int64
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for j := range 400 {
				d := j / 20
				if i == 0 {
					today.Store(int64(d))
				}
				key := (i + j) % 4
				at := noon.Add(time.Duration(d) * day)
				switch r := g.Get(string(rune('a'+key))).TakeAt(at, 1+j%2); {
				case r.OK && j%5 == 0:
					g.Get(string(rune('a'+key))).Refund(at, 1+j%2)
				case r.OK:
					allowed[d][key].Add(int64(1 + j%2))
				}
				metricsOf(g)
			}
		})
	}
	callers.Wait()
	for d := range allowed {
		for key := range allowed[d] {
			require.LessOrEqual(t, allowed[d][key].Load(), int64(limit))
		}
	}
	require.NoError(t, g.Close())
}
