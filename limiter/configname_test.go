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

// namedLimiter is a limiter whose configuration has a Name.
type namedLimiter interface {
	waitingLimiter
	stat.Source
	Name() string
	Stats() limiter.Stats
}

// limiterOfEachKind returns a limiter of each kind, with two tokens per minute.
func limiterOfEachKind(name string, shadow bool, t0 time.Time) map[string]namedLimiter {
	return map[string]namedLimiter{
		"bucket":  limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.PerMinute(2), Burst: 2, Name: name, Shadow: shadow}, t0),
		"fixed":   limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 2, Window: time.Minute, Name: name, Shadow: shadow}, t0),
		"sliding": limiter.NewSlidingWindowAt(limiter.WindowConfig{Limit: 2, Window: time.Minute, Name: name, Shadow: shadow}, t0),
		"log":     limiter.NewSlidingLogAt(limiter.WindowConfig{Limit: 2, Window: time.Minute, Name: name, Shadow: shadow}, t0),
		"leaky":   limiter.NewLeakyBucketAt(limiter.LeakyBucketConfig{Rate: limiter.PerMinute(2), Capacity: 2, Name: name, Shadow: shadow}, t0),
	}
}

func TestALimiterWithANameKeepsStatistics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, l := range limiterOfEachKind("logins", false, time.Now()) {
			require.Equal(t, "logins", l.Name())
			require.True(t, l.Take(2).OK, kind)
			require.False(t, l.Take(1).OK, kind)
			require.False(t, l.TakeAt(time.Now(), 2).OK, kind)
			l.Take(0)
			err := limiter.WaitAtMost(t.Context(), l, 1, sec)
			require.ErrorContains(t, err, "limiter logins: ", kind)
			require.NoError(t, l.Wait(t.Context(), 1), kind)
			gone, leave := context.WithCancel(t.Context())
			time.AfterFunc(ms, leave)
			require.Equal(t, context.Canceled, l.Wait(gone, 2), kind)

			near := int64(1)
			if kind == "leaky" {
				near = 0
			}
			require.Equal(t, limiter.Stats{Allowed: 1, Refused: 3, Waited: 1, Cancelled: 1, Near: near}, l.Stats(), kind)
			figures := readMetrics(t, l)
			require.EqualValues(t, 3, figures["weir.limiter.requests refused"], kind)
			require.EqualValues(t, 2, figures["weir.limiter.limit"], kind)
		}
	})
}

func TestALimiterWithoutANameCountsNothing(t *testing.T) {
	for kind, l := range limiterOfEachKind("", false, start) {
		require.True(t, l.TakeAt(start, 2).OK, kind)
		require.False(t, l.TakeAt(start, 1).OK, kind)
		require.Empty(t, l.Name(), kind)
		require.Zero(t, l.Stats(), kind)
		require.Empty(t, readMetrics(t, l), kind)
	}
}

// A request that shadow mode allows takes no tokens, so its refund gives none back.
func TestARefundInShadowModeGivesBackTakenTokens(t *testing.T) {
	kinds := limiterOfEachKind("logins", true, start)
	for kind, l := range kinds {
		taken, shadowed := limiter.ReserveAt(l, start, 2), limiter.ReserveAt(l, start, 1)
		require.True(t, taken.OK, kind)
		require.True(t, shadowed.OK, kind)
		shadowed.RefundAt(start, 1)
		require.Zero(t, l.TakeAt(start, 0).Remaining, "%s: the token was not taken", kind)
		if kind == "leaky" { // it cannot give back a part of a request
			taken.RefundAt(start, 2)
			require.Equal(t, 2, l.TakeAt(start, 0).Remaining, kind)
			continue
		}
		taken.RefundAt(start, 1)
		require.Equal(t, 1, l.TakeAt(start, 0).Remaining, kind)
	}
}

func TestShadowNeedsAName(t *testing.T) {
	for _, config := range []interface{ Validate() error }{
		limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Shadow: true},
		limiter.WindowConfig{Limit: 1, Window: sec, Shadow: true},
		limiter.LeakyBucketConfig{Rate: limiter.PerSecond(1), Shadow: true},
	} {
		require.EqualError(t, config.Validate(), "limiter: Shadow is set without a Name, must have both", "%T", config)
	}
}

// A request that one limiter refuses is not counted as allowed by the limiters asked before it.
func TestAJointCountsARequestOnce(t *testing.T) {
	first := limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 5, Window: sec, Name: "logins"}, start)
	shadow := limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 1, Window: sec, Name: "logins", Shadow: true}, start)
	last := limiter.NewFixedWindowAt(limiter.WindowConfig{Limit: 9, Window: sec, Name: "logins"}, start)
	all := limiter.NewJoint("", first, shadow, rivalCallers{newSlidingLog(5, sec)}, last)
	for range 3 {
		require.False(t, all.TakeAt(start, 2).OK)
	}
	require.Zero(t, first.Stats(), "another limiter refused")
	require.Zero(t, shadow.Stats())
	require.Zero(t, last.Stats())
	require.Equal(t, 5, first.TakeAt(start, 0).Remaining)
	require.Equal(t, 1, shadow.TakeAt(start, 0).Remaining)

	all = limiter.NewJoint("", first, shadow, last)
	require.True(t, all.TakeAt(start, 2).OK, "shadow mode allows it")
	require.True(t, all.TakeAt(start, 3).OK)
	require.False(t, all.TakeAt(start, 1).OK)
	require.EqualValues(t, 2, first.Stats().Allowed)
	require.EqualValues(t, 1, first.Stats().Refused)
	require.EqualValues(t, 2, shadow.Stats().Shadowed)
	require.EqualValues(t, 2, last.Stats().Allowed)
	require.Zero(t, last.Stats().Refused)
}

func TestTakeOfANamedLimiterAllocatesNothing(t *testing.T) {
	for kind, l := range limiterOfEachKind("logins", false, time.Now()) {
		require.Zero(t, testing.AllocsPerRun(100, func() { l.Take(1); l.Take(2) }), kind)
		require.Zero(t, testing.AllocsPerRun(100, func() { l.Observe(func(*stat.Series, float64) bool { return true }) }), kind)
	}
}

func TestARefundInShadowModeConcernsOneKey(t *testing.T) {
	g := limiter.NewGroupAt(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Burst: 2, Name: "logins", Shadow: true}, start)
	ann, bob := g.Get("ann"), g.Get("bob")
	taken := limiter.ReserveAt(ann, start, 2)
	require.True(t, bob.TakeAt(start, 2).OK)
	shadowed := limiter.ReserveAt(ann, start, 1)
	require.True(t, shadowed.OK, "allowed without a token")
	shadowed.RefundAt(start, 1)
	require.Zero(t, ann.TakeAt(start, 0).Remaining, "the last token was not taken")
	taken.RefundAt(start, 1)
	require.Equal(t, 1, ann.TakeAt(start, 0).Remaining, "the one before was")
	require.Zero(t, bob.TakeAt(start, 0).Remaining, "bob took both tokens")
}

func TestTheMemoryOfShadowModeIsBounded(t *testing.T) {
	g := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: limiter.Off, MaxKeys: 100, Name: "logins", Shadow: true})
	before := heapInUse()
	for key := range 100_000 {
		require.True(t, g.Get(key).Take(1).OK)
	}
	require.Less(t, int64(heapInUse()-before), int64(1<<16))
	require.Zero(t, g.Len())
}

// A LeakyBucket allows a request only if it is empty, so none of its tokens is near the limit.
func TestALeakyBucketIsNeverNearItsLimit(t *testing.T) {
	paced := limiter.NewLeakyBucketAt(limiter.LeakyBucketConfig{Rate: limiter.PerSecond(1), Capacity: 10, Name: "logins"}, start)
	joint := limiter.NewJoint("logins", limiter.NewJoint("", paced), newSlidingLog(100, hour))
	for i := range 5 {
		require.True(t, joint.TakeAt(start.Add(time.Duration(i)*sec), 1).OK)
	}
	require.Equal(t, limiter.Stats{Allowed: 5}, paced.Stats())
	require.Equal(t, limiter.Stats{Allowed: 5}, joint.Stats())
}
