package weir_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

func TestFiftyThousandKeysHaveRoomByDefault(t *testing.T) {
	g := weir.NewGroup[int]("g", weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1}})
	ctx := t.Context()
	for key := range 50_000 {
		if err := g.Get(key).Run(ctx, succeed); err != nil { // require is slow
			require.NoError(t, err)
		}
	}
	require.Equal(t, 50_000, g.Len())
}

// The comments of Config and GroupConfig say about 900 bytes for Adaptive, and 5 kB for
// RefuseHopeless.
func TestMemoryOfOptionsOfAKey(t *testing.T) {
	bytes := func(c weir.Config) int {
		const keys = 1000
		g := weir.NewGroup[int]("g", weir.GroupConfig{Gate: c})
		before := heapInUse()
		for key := range keys {
			require.NoError(t, g.Get(key).Run(t.Context(), succeed))
		}
		after := heapInUse()
		runtime.KeepAlive(g)
		return (after - before) / keys
	}
	require.InDelta(t, 900, float64(bytes(weir.Config{Adaptive: true})-bytes(weir.Config{})), 100)
	require.InDelta(t, 5000, float64(bytes(weir.Config{RefuseHopeless: true})-bytes(weir.Config{})), 300)
}
