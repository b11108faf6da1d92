package limiter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The hashes of a Group are random, so equal hashes are tested on the table itself.
func TestTableSeparatesKeysWithTheSameHash(t *testing.T) { // scenario 66
	var table table[string]
	const hash = 1<<64 - 1 // of the last slot, so that searches continue at the beginning
	put := func(key string, full, idle int64) (evicted bool) {
		s, found := table.find(hash, key, idle)
		require.False(t, found, key)
		return table.put(s, slot[string]{hash: hash, full: full, key: key})
	}
	find := func(key string) int64 {
		s, found := table.find(hash, key, alwaysFull)
		if !found {
			return 0
		}
		return s.full
	}
	for i, key := range []string{"a", "b", "c"} {
		require.False(t, put(key, int64(10*(i+1)), 0))
	}
	require.Equal(t, []int64{10, 20, 30, 0}, []int64{find("a"), find("b"), find("c"), find("d")})

	require.True(t, put("d", 40, 11), "replaces the idle key")
	require.Equal(t, []int64{0, 20, 30, 40}, []int64{find("a"), find("b"), find("c"), find("d")})
	require.Equal(t, 3, table.keys)
	require.Equal(t, 3, table.taken)

	require.Equal(t, 1, table.evictIdle(100, 25))
	require.Equal(t, []int64{0, 30, 40}, []int64{find("b"), find("c"), find("d")}, "keys behind it are still found")
	require.Equal(t, 2, table.keys)
	require.Zero(t, table.evictIdle(100, 25))
	require.False(t, put("e", 50, 25), "takes the free slot")
	require.Equal(t, 3, table.taken)

	require.Equal(t, 1, table.rebuild(35))
	require.Equal(t, []int64{0, 40, 50}, []int64{find("c"), find("d"), find("e")})
	require.Equal(t, 2, table.keys)
	require.Equal(t, 2, table.taken)
}

func TestTableGrowsWithItsKeys(t *testing.T) {
	var table table[int]
	for i := range 10_000 {
		hash := uint64(i+1) * 0x9e3779b97f4a7c15
		s, found := table.find(hash, i, alwaysFull+1)
		require.False(t, found)
		if table.isCrowded() {
			require.Zero(t, table.rebuild(0))
			s, _ = table.find(hash, i, alwaysFull+1)
		}
		table.put(s, slot[int]{hash: hash, full: int64(i), key: i})
	}
	require.Equal(t, 10_000, table.keys)
	require.LessOrEqual(t, len(table.slots), 10_000*8/5+minSlots)
	for i := range 10_000 {
		s, found := table.find(uint64(i+1)*0x9e3779b97f4a7c15, i, alwaysFull)
		require.True(t, found)
		require.EqualValues(t, i, s.full)
	}
}
