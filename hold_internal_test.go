package weir

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHoldsAreBounded(t *testing.T) {
	s := &holdTable[int]{max: 100}
	for i := range 100_000 {
		h := keyHold[int]{table: s, key: i}
		h.extend(int64(i), time.Hour, 0, 0)
		_, held := h.endOf(int64(i))
		require.True(t, held, "the newest hold is stored")
		require.LessOrEqual(t, len(s.ends), s.max)
	}
	require.Len(t, s.ends, s.max)
	h := keyHold[int]{table: s, key: 1}
	_, held := h.endOf(s.last.Load())
	require.False(t, held)
	require.Empty(t, s.ends, "no entries remain after the last hold has ended")
	require.Zero(t, s.last.Load())
}

// Holds that end early do not evict a hold that ends later.
func TestHoldThatEndsFirstIsEvicted(t *testing.T) {
	s := &holdTable[int]{max: 10}
	long := keyHold[int]{table: s, key: -1}
	long.extend(0, time.Hour, 0, 0)
	for i := range 10_000 {
		h := keyHold[int]{table: s, key: i}
		h.extend(int64(i), time.Minute, 0, 0)
	}
	end, held := long.endOf(10_000)
	require.True(t, held)
	require.Equal(t, int64(time.Hour), end)
}

func TestEndedHoldsAreEvicted(t *testing.T) {
	s := &holdTable[int]{max: 10}
	for i := range 10 {
		h := keyHold[int]{table: s, key: i}
		h.extend(0, time.Duration(1+i), 0, 0)
	}
	late := keyHold[int]{table: s, key: 10}
	late.extend(9, time.Second, 0, 0)
	require.Len(t, s.ends, 2, "the hold that has not ended, and the new one")
	end, held := late.endOf(9)
	require.True(t, held)
	require.Equal(t, int64(9+time.Second), end)
}

// Times before the epoch, around it, and at the limits of int64.
func TestHoldLastsAtAnyTime(t *testing.T) {
	for _, at := range []int64{math.MinInt64, -int64(time.Hour), -5, -1, 0, 1, math.MaxInt64 - 9} {
		for _, d := range []time.Duration{1, 5, time.Second, math.MaxInt64} {
			h := keyHold[int]{table: &holdTable[int]{max: 1}}
			h.extend(at, d, 0, 0)
			last := at + min(int64(d)-1, math.MaxInt64-1-max(at, 0))
			_, held := h.endOf(at)
			require.True(t, held, "%d for %d", at, d)
			_, held = h.endOf(last)
			require.True(t, held, "%d for %d", at, d)
			if last < math.MaxInt64-1 {
				_, held = h.endOf(last + 2)
				require.False(t, held, "%d for %d", at, d)
			}
		}
	}
}
