package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/memory"
)

func TestGrownCountsOnlyTheResult(t *testing.T) {
	from := make([]byte, 1<<20)
	grown := memory.Grown(func() any {
		waste := make([]byte, 4<<20)
		copy(waste, from)
		return make([]byte, 1<<20)
	})
	require.InDelta(t, 1<<20, grown, 1<<17)
}

func TestEveryObjectTakesMemory(t *testing.T) {
	for _, object := range memory.All(1000) {
		object.N = min(object.N, 100)
		require.Positive(t, object.Size().Bytes, object.Name)
	}
}

func TestNoObjectExceedsItsBound(t *testing.T) {
	for _, object := range memory.All(20_000) {
		if object.Bound > 0 {
			size := object.Size()
			t.Log(size)
			require.False(t, size.Missed(), "%v", size)
		}
	}
}

func TestMissedNeedsABound(t *testing.T) {
	fine, large, free := memory.Size{"key", 44.2, 56}, memory.Size{"key", 57, 56}, memory.Size{Name: "breaker", Bytes: 2384}
	require.Equal(t, []bool{false, true, false}, []bool{fine.Missed(), large.Missed(), free.Missed()})
	require.Equal(t, "key: 44.2 bytes, bound 56", fine.String())
	require.Equal(t, "breaker: 2384.0 bytes", free.String())
}
