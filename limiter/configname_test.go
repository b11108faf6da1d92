package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// source is a limiter whose configuration has a Name.
type source interface {
	waitingLimiter
	stat.Source
	Name() string
	Stats() limiter.Stats
}

// sources makes one limiter of each kind, of which two permits can be taken in a minute.
func sources(name string, c limiter.NamedConfig, t0 time.Time) map[string]source {
	return map[string]source{
		"bucket":  limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.PerMinute(2), Burst: 2, Name: name, Named: c}, t0),
		"fixed":   limiter.NewFixedWindowAt(limiter.FixedWindowConfig{Limit: 2, Window: time.Minute, Name: name, Named: c}, t0),
		"sliding": limiter.NewSlidingWindowAt(limiter.SlidingWindowConfig{Limit: 2, Window: time.Minute, Name: name, Named: c}, t0),
		"log":     limiter.NewSlidingLogAt(limiter.SlidingLogConfig{Limit: 2, Window: time.Minute, Name: name, Named: c}, t0),
		"leaky":   limiter.NewLeakyBucketAt(limiter.LeakyBucketConfig{Rate: limiter.PerMinute(2), Capacity: 2, Name: name, Named: c}, t0),
	}
}

func TestALimiterWithANameKeepsStatistics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, l := range sources("logins", limiter.NamedConfig{Near: 1}, time.Now()) {
			require.Equal(t, "logins", l.Name())
			require.True(t, l.Take(2).OK, kind)
			require.False(t, l.Take(1).OK, kind)
			require.False(t, l.TakeAt(time.Now(), 2).OK, kind)
			l.Take(0)
			err := l.WaitAtMost(t.Context(), 1, sec)
			require.ErrorContains(t, err, "limiter logins: ", kind)
			require.NoError(t, l.Wait(t.Context(), 1), kind)
			gone, leave := context.WithCancel(t.Context())
			time.AfterFunc(ms, leave)
			require.Equal(t, context.Canceled, l.Wait(gone, 2), kind)

			require.Equal(t, limiter.Stats{
				Allowed: 1, Refused: 3,
				Waited: 1, Cancelled: 1,
			}, l.Stats(), kind)
			figures := observed(t, l)
			require.EqualValues(t, 3, figures["weir.limiter.requests refused"], kind)
			require.EqualValues(t, 2, figures["weir.limiter.limit"], kind)
		}
	})
}

func TestALimiterWithoutANameCountsNothing(t *testing.T) {
	for kind, l := range sources("", limiter.NamedConfig{}, start) {
		require.True(t, l.TakeAt(start, 2).OK, kind)
		require.False(t, l.TakeAt(start, 1).OK, kind)
		require.Empty(t, l.Name(), kind)
		require.Zero(t, l.Stats(), kind)
		require.Empty(t, observed(t, l), kind)
	}
}

// What shadow mode lets through has not been taken, so a refund of it gives nothing back.
func TestARefundInShadowModeGivesBackWhatWasTaken(t *testing.T) {
	kinds := sources("logins", limiter.NamedConfig{Shadow: true}, start)
	foreign := limiter.NewNamed("logins", taker{bucket(limiter.PerMinute(2), 2)}, limiter.NamedConfig{Shadow: true})
	kinds["foreign"] = struct {
		*limiter.Named
	}{foreign}
	for kind, l := range kinds {
		require.True(t, l.TakeAt(start, 2).OK, kind)
		require.True(t, l.TakeAt(start, 1).OK, kind)
		l.Refund(1)
		require.Zero(t, l.TakeAt(start, 0).Remaining, "%s: the one that is given back was not taken", kind)
		if kind == "leaky" { // which has no part of a request to give back
			l.Refund(2)
			require.Equal(t, 2, l.TakeAt(start, 0).Remaining, kind)
			continue
		}
		l.Refund(1)
		require.Equal(t, 1, l.TakeAt(start, 0).Remaining, "%s: and this one was", kind)
	}
}

func TestNamedNeedsAName(t *testing.T) {
	const want = "limiter: Named is set, must be left out where there is no Name"
	c := limiter.NamedConfig{Shadow: true}
	for _, config := range []interface{ Validate() error }{
		limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Named: c},
		limiter.FixedWindowConfig{Limit: 1, Window: sec, Named: c},
		limiter.SlidingWindowConfig{Limit: 1, Window: sec, Named: c},
		limiter.SlidingLogConfig{Limit: 1, Window: sec, Named: c},
		limiter.LeakyBucketConfig{Rate: limiter.PerSecond(1), Named: c},
	} {
		require.EqualError(t, config.Validate(), want, "%T", config)
	}
	bad := limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Name: "x", Named: limiter.NamedConfig{Near: 2}}
	require.EqualError(t, bad.Validate(), "limiter: Near is 2, must be above 0 and at most 1 (or 0 for the default)")
	require.PanicsWithError(t, "limiter: the name is empty", func() {
		limiter.NewNamed("", bucket(limiter.PerSecond(1), 1), limiter.NamedConfig{})
	})
}

// A request that some members have admitted before another one refused it has been admitted by none.
func TestAJointCountsARequestOnce(t *testing.T) {
	first := limiter.NewFixedWindowAt(limiter.FixedWindowConfig{Limit: 5, Window: sec, Name: "logins"}, start)
	shadow := limiter.NewFixedWindowAt(limiter.FixedWindowConfig{Limit: 1, Window: sec, Name: "logins", Named: limiter.NamedConfig{Shadow: true}}, start)
	last := limiter.NewFixedWindowAt(limiter.FixedWindowConfig{Limit: 9, Window: sec, Name: "logins"}, start)
	all := limiter.All(first, shadow, robbed{exactLog(5, sec)}, last)
	for range 3 {
		require.False(t, all.TakeAt(start, 2).OK)
	}
	require.Zero(t, first.Stats(), "it was not this one that refused")
	require.Zero(t, shadow.Stats())
	require.Zero(t, last.Stats())
	require.Equal(t, 5, first.TakeAt(start, 0).Remaining)
	require.Equal(t, 1, shadow.TakeAt(start, 0).Remaining)

	all = limiter.All(first, shadow, last)
	require.True(t, all.TakeAt(start, 2).OK, "the shadow lets it through")
	require.True(t, all.TakeAt(start, 3).OK)
	require.False(t, all.TakeAt(start, 1).OK)
	require.EqualValues(t, 2, first.Stats().Allowed)
	require.EqualValues(t, 1, first.Stats().Refused)
	require.EqualValues(t, 2, shadow.Stats().Shadowed)
	require.EqualValues(t, 2, last.Stats().Allowed)
	require.Zero(t, last.Stats().Refused)
}

func TestNamedBucketTakesWithoutAllocating(t *testing.T) {
	for kind, l := range sources("logins", limiter.NamedConfig{}, time.Now()) {
		require.Zero(t, testing.AllocsPerRun(100, func() { l.Take(1); l.Take(2) }), kind)
		require.Zero(t, testing.AllocsPerRun(100, func() { l.Observe(func(*stat.Series, float64) bool { return true }) }), kind)
	}
}
