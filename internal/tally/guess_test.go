package tally_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/tally"
)

// TestThePlaceIsAtMostTwoBeyondTheGuess keeps recording a time cheap.
func TestThePlaceIsAtMostTwoBeyondTheGuess(t *testing.T) {
	check := func(nanos int64) {
		beyond := tally.Slot(nanos) - tally.Guess(nanos)
		require.True(t, beyond >= 0 && beyond <= 2, "%d ns: the guess is %d places short", nanos, beyond)
	}
	for i := range tally.Buckets {
		at := int64(tally.Bound(tally.Lowest+i) * 1e9)
		check(at - 1)
		check(at)
		check(at + 1)
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	for range 100_000 {
		check(rnd.Int64() >> rnd.IntN(63))
	}
	check(math.MaxInt64)
}
