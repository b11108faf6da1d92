package limiter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A request that has loaded a state which is then replaced must retry with the new one.
func TestAReplacedStateAnswersNoRequest(t *testing.T) {
	b := NewTokenBucket(TokenBucketConfig{Rate: PerSecond(1), Burst: 5})
	old := b.state.Load()
	require.NoError(t, b.SetBurst(3))
	var r Result
	_, current := old.take(&r, 0, 1)
	require.False(t, current)
	require.False(t, old.takeFast(0, 1))
	require.False(t, old.predict(&r, 0, 0, 1))
	require.Zero(t, r)
	require.Equal(t, int64(replaced), old.full.Load())
	require.Equal(t, 3, b.Take(0).Remaining)
}

// A group whose waiters have left is as fast as one that never had any.
func TestAQueueIsRemovedWithItsLastWaiter(t *testing.T) {
	g := NewGroup(GroupConfig[string]{Rate: Per(1, time.Hour), Burst: 1})
	g.Get("ann").Take(1)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		require.Error(t, g.Get("ann").Wait(cancelled, 1))
		require.Error(t, g.Get("ann").Wait(t.Context(), 2))
	}
	require.Zero(t, g.queues.count.Load())
	require.Empty(t, g.queues.byKey)
	require.Nil(t, g.queues.of("ann"))
}
