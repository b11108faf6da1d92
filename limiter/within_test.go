package limiter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever has found terms and is overtaken by a change of them is sent on to those that took their place.
func TestTermsThatAreReplacedAnswerNobody(t *testing.T) {
	b := NewTokenBucket(TokenBucketConfig{Rate: PerSecond(1), Burst: 5})
	old := b.terms.Load()
	require.NoError(t, b.SetBurst(3))
	var r Result
	require.False(t, old.take(&r, 0, 1))
	require.False(t, old.admit(0, 1))
	require.False(t, old.after(&r, 0, 0, 1))
	require.False(t, old.giveBack(1))
	require.Zero(t, r)
	require.Equal(t, int64(replaced), old.full.Load())
	require.Equal(t, 3, b.Take(0).Remaining)
}

// A group in which somebody has waited is as quick again as one in which nobody has.
func TestLinesCountThoseThatThereAre(t *testing.T) {
	g := NewGroup(GroupConfig[string]{Rate: PerHour(1), Burst: 1})
	g.Get("ann").Take(1)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		require.Error(t, g.Get("ann").Wait(cancelled, 1))
		require.Error(t, g.Get("ann").Wait(t.Context(), 2))
	}
	require.Zero(t, g.lines.waiting.Load())
	require.Empty(t, g.lines.byKey)
	require.Nil(t, g.lines.of("ann"))
}
