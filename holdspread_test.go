package weir_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// endOfHold returns when a gate that is held stops refusing.
func endOfHold(t *testing.T, g *weir.Gate) time.Time {
	t.Helper()
	_, err := g.Allow(t.Context())
	require.ErrorIs(t, err, weir.ErrRefused)
	return time.Now().Add(weir.RetryAfter(err))
}

func TestGatesWithTheSameRetryAfterResumeAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var early, late int
		ends := make([]time.Time, 0, 1000)
		for range 1000 { // answers of the service that say the same moment
			g := weir.New("g", weir.Config{})
			time.Sleep(time.Microsecond)
			g.Hold(10 * time.Second)
			at := endOfHold(t, g)
			require.False(t, at.Before(time.Now().Add(10*time.Second)), "no gate comes before the time that was asked for")
			require.True(t, at.Before(time.Now().Add(11*time.Second)))
			ends = append(ends, at)
			switch share := time.Until(at) - 10*time.Second; {
			case share < 500*time.Millisecond:
				early++
			default:
				late++
			}
		}
		require.InDelta(t, 500, early, 80)
		require.InDelta(t, 500, late, 80)
		slices.SortFunc(ends, time.Time.Compare)
		for i := range len(ends) - 50 {
			require.Greater(t, ends[i+50].Sub(ends[i]), 10*time.Millisecond, "no 10 ms has more than 5 % of the gates")
		}
	})
}

// If a service answers many calls of a process with the same moment, the hold must not end at the
// latest time that the random shares allow.
func TestAllWaitsOfAHoldAreStretchedAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []*weir.Gate{weir.New("g", weir.Config{}), hosts(weir.GroupConfig{}).Get("a")} {
			moment := time.Now().Add(20 * time.Second)
			g.Hold(time.Until(moment))
			first := endOfHold(t, g)
			for range 100 {
				time.Sleep(time.Millisecond)
				g.Hold(time.Until(moment))
			}
			require.Equal(t, first, endOfHold(t, g))

			shares := map[time.Duration]bool{}
			for range 20 { // each hold draws a new share
				time.Sleep(time.Hour)
				g.Hold(time.Minute)
				shares[time.Until(endOfHold(t, g))] = true
			}
			require.Greater(t, len(shares), 15)
		}
	})
}

func TestCooldownJitterBoundsTheStretchOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exactly := weir.New("g", withExactHold(weir.Config{}))
		exactly.Hold(time.Minute)
		require.Equal(t, time.Minute, time.Until(endOfHold(t, exactly)))

		longest := time.Duration(0)
		for range 200 {
			g := weir.New("g", weir.Config{Breaker: breaker.Config{CooldownJitter: 1}})
			time.Sleep(time.Microsecond)
			g.Hold(time.Minute)
			held := time.Until(endOfHold(t, g))
			require.GreaterOrEqual(t, held, time.Minute)
			require.Less(t, held, 2*time.Minute)
			longest = max(longest, held)
		}
		require.Greater(t, longest, 110*time.Second)

		g := weir.New("g", weir.Config{Breaker: breaker.Config{CooldownJitter: 1}})
		g.Hold(math.MaxInt64)
		time.Sleep(100 * 365 * 24 * time.Hour)
		_, err := g.Allow(t.Context())
		require.ErrorIs(t, err, weir.ErrRefused, "no overflow")
	})
}
