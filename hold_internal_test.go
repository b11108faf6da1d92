package weir

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHoldsAreBounded(t *testing.T) {
	s := &holds[int]{max: 100}
	for i := range 100_000 {
		h := hold[int]{of: s, key: i}
		h.extend(int64(i), time.Hour)
		require.NotZero(t, h.end(int64(i)), "the last that came has room")
		require.LessOrEqual(t, len(s.ends), s.max)
	}
	require.Len(t, s.ends, s.max)
	h := hold[int]{of: s, key: 1}
	require.Zero(t, h.end(s.latest.Load()))
	require.Empty(t, s.ends, "when the last has ended nothing is left")
	require.Zero(t, s.latest.Load())
}

// Strangers whose holds are shorter do not push out one that is longer.
func TestTheHoldThatEndsFirstGivesWay(t *testing.T) {
	s := &holds[int]{max: 10}
	long := hold[int]{of: s, key: -1}
	long.extend(0, time.Hour)
	for i := range 10_000 {
		h := hold[int]{of: s, key: i}
		h.extend(int64(i), time.Minute)
	}
	require.Equal(t, int64(time.Hour), long.end(10_000))
}

func TestHoldsThatHaveEndedGiveWay(t *testing.T) {
	s := &holds[int]{max: 10}
	for i := range 10 {
		h := hold[int]{of: s, key: i}
		h.extend(0, time.Duration(1+i))
	}
	late := hold[int]{of: s, key: 10}
	late.extend(9, time.Second)
	require.Len(t, s.ends, 2, "the one that goes on, and the new one")
	require.Equal(t, int64(9+time.Second), late.end(9))
}
