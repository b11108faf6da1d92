package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A small group has one shard, so that all its room can be used. The shards together have room for
// MaxKeys keys.
func TestTheShardsOfAGroup(t *testing.T) {
	for most, parts := range map[int]int{1: 1, 127: 1, 128: 1, 129: 2, 256: 2, 257: 3, 300: 3, 10_000: 79, 1_000_000: 256} {
		g := NewGroupAt[int]("g", GroupConfig{MaxKeys: most, MaxSeries: Off}, time.Now())
		require.Len(t, g.shards, parts, "of %d", most)
		sum := 0
		for i := range g.shards {
			sum += g.shards[i].max
			require.InDelta(t, most/parts, g.shards[i].max, 1, "of %d", most)
		}
		require.Equal(t, most, sum)
	}
}

func TestTheDefaultOfMaxSeries(t *testing.T) {
	for most, want := range map[int]int{0: 100, 10_000: 100, 200: 100, 199: 99, 10: 5, 1: 0} {
		require.Equal(t, want, GroupConfig{MaxKeys: most}.orDefault().MaxSeries, "of %d", most)
	}
	require.Zero(t, GroupConfig{MaxSeries: Off}.orDefault().MaxSeries)
	require.Equal(t, 7, GroupConfig{MaxSeries: 7}.orDefault().MaxSeries)
}

// A new key checks a bounded number of members of a large shard, and the next key continues from
// there.
func TestAShardChecksABoundedNumberOfMembers(t *testing.T) {
	t0 := time.Now()
	g := NewGroupAt[int]("g", GroupConfig{MaxKeys: 100_000, MaxSeries: Off}, t0)
	s := &g.shards[0]
	require.Greater(t, s.max, maxChecks+1)
	for key := range s.max {
		b := s.add(key, "", t0)
		require.NotNil(t, b)
		if key >= 1 && key <= maxChecks { // the members that are checked first
			b.OpenForAt(t0, time.Hour)
		}
		s.byKey[key].used.Store(false)
	}
	u := t0.Add(time.Minute)
	require.Nil(t, s.add(s.max, "", u))
	require.NotNil(t, s.add(s.max, "", u))
	require.EqualValues(t, 1, g.evictions.Load())
}
