package places_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/places"
)

func TestEachMomentIsGivenOnce(t *testing.T) {
	const callers, each = 8, 40_000
	p := places.New()
	var given [callers * each]atomic.Int32
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				given[(p.Take(time.Second, time.Microsecond)-time.Second)/time.Microsecond].Add(1)
			}
		})
	}
	wg.Wait()
	for i := range given {
		if n := given[i].Load(); n != 1 {
			require.Equalf(t, 1, n, "callers at moment %d", i)
		}
	}
	require.Equal(t, time.Minute, p.Take(time.Minute, time.Microsecond), "all moments before have passed")
}

func TestMomentsEndAtTheHorizon(t *testing.T) {
	p := places.New()
	for lap := range 3 {
		for i := range 7 {
			require.Equal(t, time.Hour+time.Duration(i)*10*time.Second, p.Take(time.Hour, 10*time.Second), "lap %d", lap)
		}
	}
	rare := places.New() // an interval beyond the horizon
	for range 3 {
		require.Equal(t, time.Hour, rare.Take(time.Hour, 24*time.Hour))
	}
	huge := places.New() // no overflow
	for range 3 {
		require.Equal(t, time.Duration(math.MaxInt64-5), huge.Take(math.MaxInt64-5, math.MaxInt64))
	}
	require.Equal(t, -time.Hour, places.New().Take(-time.Hour, time.Second), "before the origin")
}

func TestQuestionsBeyondTheRefusalsTakeNoMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := places.New()
		next := time.Now().Add(time.Second)
		require.Equal(t, time.Second, p.After(next), "a question without a refusal")
		for i := range 5 {
			p.Refuse(100 * time.Millisecond)
			require.Equal(t, time.Second+time.Duration(i)*100*time.Millisecond, p.After(next))
			again := p.After(next) // for a log
			require.GreaterOrEqual(t, again, time.Second)
			require.LessOrEqual(t, again, time.Second+time.Duration(i)*100*time.Millisecond)
		}
		time.Sleep(time.Minute)
		p.Refuse(100 * time.Millisecond)
		require.Zero(t, p.After(next), "the token has been there for long")
		require.Zero(t, p.After(time.Time{}))

		p.Refuse(time.Second)
		require.Equal(t, time.Hour, p.After(time.Now().Add(time.Hour)))
		for range 10 {
			require.LessOrEqual(t, p.After(time.Now()), places.Horizon, "the limit has become higher meanwhile")
		}
	})
}

func TestWaitIsNeverTooShortAndNeverTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := places.New()
		for i := range 2000 {
			p.Refuse(time.Duration(i%7) * 50 * time.Millisecond)
			next := time.Now().Add(time.Duration(i%13) * 10 * time.Millisecond)
			for range i % 3 {
				wait := p.After(next)
				require.GreaterOrEqual(t, wait, time.Until(next))
				require.LessOrEqual(t, wait, time.Until(next)+places.Horizon)
			}
			time.Sleep(time.Duration(i%5) * time.Millisecond)
		}
	})
}

// Places in a package variable are used with the real clock, and then in one bubble after the
// other.
func TestMomentsStartAgainWithEachClock(t *testing.T) {
	p := places.New()
	give := func(t *testing.T) {
		next := time.Now().Add(10 * time.Second)
		for i := range 5 {
			p.Refuse(time.Second)
			require.InDelta(t, 10+i, p.After(next).Seconds(), 0.5)
		}
		require.LessOrEqual(t, p.After(next), 15*time.Second, "a question without a refusal")
	}
	give(t)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			give(t)
			time.Sleep(20 * time.Second)
			give(t)
		})
	}
	give(t)
}
