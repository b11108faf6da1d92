package limiter_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// windowBehind takes a window's tokens at random times, lets callers wait that want up to most
// tokens each, and returns the RetryAfter of a refused Take behind them, and when a caller in its
// place is served.
func windowBehind(t *testing.T, w waitingLimiter, random *rand.Rand, most int) (told, served time.Duration) {
	for range 5 {
		time.Sleep(time.Duration(random.Int64N(int64(sec))))
		w.Take(1)
	}
	for w.Take(1).OK { // a window may have ended during these times
	}
	l := newCallers(t, w)
	for i := range 1 + random.IntN(40) {
		l.start(t.Context(), strconv.Itoa(i), 1+random.IntN(most))
	}
	n := 1 + random.IntN(most)
	r := w.Take(n)
	require.False(t, r.OK)
	began := time.Now()
	require.NoError(t, w.Wait(t.Context(), n))
	return r.RetryAfter, time.Since(began)
}

// The RetryAfter behind waiters is exact if each wants one token, and otherwise never too long:
// waiters that want more than a window has left leave tokens unused.
func TestAWindowPredictsWhenItsWaitersAreServed(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			for _, most := range []int{1, 3} {
				for name, w := range allWindows(limiter.WindowConfig{Limit: 3, Window: 10 * sec}, time.Now()) {
					random := rand.New(rand.NewPCG(seed, uint64(most)))
					for w.Take(1).OK { // until callers have to wait
					}
					told, served := windowBehind(t, w, random, most)
					if most == 1 {
						require.Equal(t, served, told, "%s, seed %d", name, seed)
					}
					require.LessOrEqual(t, told, served, "%s, seed %d", name, seed)
				}
			}
		})
	}
}
