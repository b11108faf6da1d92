package breaker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cohortOf returns a complete cohort of calls that take the given times, and were begun 10 ms after
// each other. A share of them is ended by a deadline.
func cohortOf(r *rand.Rand, draw func(*rand.Rand) float64, share float64, deadline time.Duration) (c *cohort, at time.Duration) {
	c = &cohort{}
	for range cohortSize {
		at += 10 * time.Millisecond
		member := c.begin(at)
		took, o := time.Duration(draw(r)*float64(time.Millisecond)), Success
		if r.Float64() < share && took >= deadline {
			took, o = deadline, Failure
		}
		c.end(member, o, took, at)
	}
	return c, at
}

// Most callers have a deadline that is shorter than the median, and only the short ones of their
// calls succeed. A median of the calls as they end would be far too short.
func TestTheMedianIsThatOfAllCallsThoughDeadlinesEndMost(t *testing.T) {
	for name, draw := range map[string]func(*rand.Rand) float64{
		"constant":    func(*rand.Rand) float64 { return 50 },
		"narrow":      func(r *rand.Rand) float64 { return 50 * math.Exp(0.15*r.NormFloat64()) },
		"lognormal":   func(r *rand.Rand) float64 { return 50 * math.Exp(r.NormFloat64()) },
		"exponential": func(r *rand.Rand) float64 { return 72 * r.ExpFloat64() },
	} {
		for _, share := range []float64{0, 0.5, 0.65} {
			r := rand.New(rand.NewPCG(1, 2))
			var medians []float64
			tooShort := 0
			for range 200 {
				c, at := cohortOf(r, draw, share, 10*time.Millisecond)
				m := c.median(at)
				require.Positive(t, m, name)
				medians = append(medians, m.Seconds()*1000)
				if m <= 10*time.Millisecond {
					tooShort++
				}
			}
			slices.Sort(medians)
			require.InDelta(t, 50, medians[100], 5, "%s, %v", name, share)
			require.Zero(t, tooShort, "%s, %v: a deadline of 10 ms would count", name, share)
		}
	}
}

func TestACohortWithoutEnoughSuccessesHasNoMedian(t *testing.T) {
	c, at := cohortOf(rand.New(rand.NewPCG(1, 2)), func(*rand.Rand) float64 { return 50 }, 1, 10*time.Millisecond)
	require.EqualValues(t, noMedian, c.median(at))
	c.calls[7].took = 0
	require.Zero(t, c.median(at), "a call is running, which may succeed")
}

// Calls in flight count as calls that take longer than they have taken so far.
func TestCallsInFlightAreInTheMedian(t *testing.T) {
	c := &cohort{}
	for i := range cohortSize {
		member := c.begin(0)
		if i%4 == 0 {
			_, decided := c.end(member, Success, time.Millisecond, time.Millisecond)
			require.False(t, decided, "a quarter is fast, and the others are still running")
		}
	}
	for i := range cohortSize / 2 {
		member := uint8(2*i + 2)
		median, decided := c.end(member, Success, time.Second, time.Second)
		require.Equal(t, i >= cohortSize/4-1, decided)
		if decided {
			require.Equal(t, time.Second, median)
		}
	}
}

func TestRareCallsNeedFewerForAMedian(t *testing.T) {
	c := &cohort{}
	for i := range cohortSize / 4 {
		at := time.Duration(i) * 2 * time.Second
		member := c.begin(at)
		require.NotZero(t, member)
		_, decided := c.end(member, Success, time.Second, at+time.Second)
		require.Equal(t, i == cohortSize/4-1, decided)
	}
	require.Zero(t, c.begin(time.Minute), "it is complete")
}

// A median that was learned while deadlines counted is that of a service that has become slow.
func TestAnOutageDoesNotBecomeUsual(t *testing.T) {
	var u usualDuration
	learn := func(since, at, median time.Duration) time.Duration {
		u.learn(&cohort{since: since}, median, at)
		return time.Duration(u.known.Load())
	}
	require.EqualValues(t, noMedian, learn(0, 1, noMedian), "nothing else is known")
	require.Equal(t, time.Millisecond, learn(2, 3, time.Millisecond))
	require.Equal(t, time.Millisecond, learn(4, 5, noMedian), "nobody succeeds")
	u.counted.Store(int64(time.Second))
	require.Equal(t, time.Millisecond, learn(time.Second, 2*time.Second, time.Second), "a deadline counted since the cohort began")
	require.Equal(t, 2*time.Millisecond, learn(time.Second+1, 2*time.Second, 2*time.Millisecond))
	u.counted.Store(int64(time.Hour))
	require.Equal(t, time.Second, learn(time.Second, 2*time.Second+longestUsual, time.Second), "it was known for long enough")
}

// A call that never ends, such as a forgotten permit, does not keep a cohort for ever.
func TestACohortEndsThoughACallDoesNot(t *testing.T) {
	c := &cohort{}
	for range cohortSize {
		c.begin(0)
	}
	for member := range uint8(cohortSize - 1) {
		_, decided := c.end(member+1, Failure, 1, longestUsual-1)
		require.False(t, decided)
	}
	median, decided := c.end(0, Success, 1, longestUsual)
	require.True(t, decided)
	require.Zero(t, median)
}

func TestPendingCallsBeganBeforeOneThatHasEnded(t *testing.T) {
	b := New("b", Config{})
	s := b.regime.Load().sample
	var permits [5]Permit
	for i := range permits {
		require.NoError(t, inside{}.Admit(b, &permits[i]))
	}
	for _, step := range []struct {
		ends int
		want int64
	}{{2, 2}, {0, 1}, {4, 2}, {1, 1}, {3, 0}} {
		permits[step.ends].Record(t.Context(), nil, Success)
		require.Equal(t, step.want, s.pending(), "call %d ended", step.ends)
	}
}
