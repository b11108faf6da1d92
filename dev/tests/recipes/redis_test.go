package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
)

func TestACacheThatIsDownFailsNoCall(t *testing.T) {
	s := newRedis(t)
	gate := weir.New("cache", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 5, Cooldown: time.Hour}})
	cache := recipes.NewCache(s.addr, gate)
	defer func() { _ = cache.Close() }()
	loads := 0
	load := func(context.Context) (string, error) { //nolint:unparam // as Cached wants it
		loads++
		return "Ada", nil
	}
	name := func() {
		name, err := recipes.Cached(t.Context(), cache, "1", load)
		require.NoError(t, err)
		require.Equal(t, "Ada", name)
	}
	for range 20 {
		name()
	}
	require.Equal(t, 1, loads, "the first call finds nothing in the cache")
	require.Zero(t, gate.Totals().Failures, "nothing found is an answer")

	s.kill()
	for range 20 {
		name()
	}
	require.Equal(t, 21, loads)
	require.True(t, gate.Tripped())
	require.ErrorIs(t, cache.Get(t.Context(), "1").Err(), breaker.ErrOpen)

	s.start(t)
	gate.Breaker().OpenFor(0)
	require.Eventually(t, func() bool {
		before := loads
		name()
		return loads == before
	}, time.Minute, 10*time.Millisecond, "the cache is not used again")
}
