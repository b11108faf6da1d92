package limiter_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A log counts the tokens that a sliding window allows. The test compares the RetryAfter of both.
func TestASlidingWindowIsAtMostOnePartStricterThanALog(t *testing.T) {
	const limit, span = 20, 10 * sec
	for _, parts := range []int{1, 2, 7, 10, 100} {
		random := rand.New(rand.NewPCG(uint64(parts), 3))
		window, log := newSlidingWindow(limit, span, parts), newSlidingLog(limit, span)
		part := (span + time.Duration(parts) - 1) / time.Duration(parts)
		var at, longest time.Duration
		for range 5000 {
			at += time.Duration(random.Int64N(int64(600 * ms)))
			now, n := start.Add(at), 1+random.IntN(limit)
			r := window.TakeAt(now, n)
			if r.OK {
				require.True(t, log.TakeAt(now, n).OK, "%d parts, at %s: the log has the same", parts, at)
				continue
			}
			exact := time.Duration(0)
			if log.TakeAt(now, 0).Remaining < n {
				exact = log.TakeAt(now, n).RetryAfter
			}
			require.LessOrEqual(t, r.RetryAfter, exact+part, "%d parts, at %s", parts, at)
			longest = max(longest, r.RetryAfter-exact)
		}
		require.Greater(t, longest, part*9/10, "%d parts: the bound is reached", parts)
	}
}
