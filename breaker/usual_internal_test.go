package breaker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The estimate is compared with the exact median of the same durations. If each step changes the
// estimate by a share s, the logarithm of the estimate has a standard deviation of sqrt(s/4f). f is
// the density of the logarithm of the durations at the median. The bounds are five standard
// deviations for s = 1/32.
func TestTheEstimateIsNearTheMedian(t *testing.T) {
	for name, c := range map[string]struct {
		draw    func(r *rand.Rand) float64 // in milliseconds
		density float64
	}{
		"constant":       {func(*rand.Rand) float64 { return 50 }, 1e6},
		"narrow":         {func(r *rand.Rand) float64 { return 50 * math.Exp(0.15*r.NormFloat64()) }, 2.66},
		"wide":           {func(r *rand.Rand) float64 { return 50 * math.Exp(r.NormFloat64()) }, 0.399},
		"exponential":    {func(r *rand.Rand) float64 { return 50 * r.ExpFloat64() }, 0.347},
		"microseconds":   {func(r *rand.Rand) float64 { return 1e-3 * (1 + r.Float64()) }, 1.5},
		"days, and more": {func(r *rand.Rand) float64 { return 1e9 * (1 + r.Float64()) }, 1.5},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		bound := 5 * math.Sqrt(1/(32*4*c.density))
		for range 50 {
			var u usualDuration
			var all []float64
			for n := range int64(1001) {
				ms := c.draw(r)
				all = append(all, ms)
				u.add(int64(ms*float64(time.Millisecond)), n+1)
			}
			slices.Sort(all)
			got := float64(u.median.Load()) / float64(time.Millisecond)
			require.InDelta(t, math.Log(all[500]), math.Log(got), bound, "%s: %v ms of %v ms", name, got, all[500])
		}
	}
}

// The first samples move the estimate by a quarter each, so a first call that was unusual matters
// little.
func TestTheFirstSamplesCorrectAnUnusualFirstCall(t *testing.T) {
	for _, first := range []int64{10_000, 1_000_000, 5_000_000} {
		var u usualDuration
		for n := range int64(usualSamples / 4) {
			took := int64(100_000)
			if n == 0 {
				took = first
			}
			u.add(took, n+1)
		}
		require.InEpsilon(t, 100_000, u.median.Load(), 0.3, "the first call took %d ns", first)
	}
}

func TestTheEstimateStaysWithinTheDurations(t *testing.T) {
	var u usualDuration
	for i, took := range []int64{0, -1, math.MinInt64, 1, math.MaxInt64, math.MaxInt64, 7} {
		u.add(took, int64(i+1))
		require.Positive(t, u.median.Load())
	}
	for n := range int64(10_000) {
		u.add(math.MaxInt64, n)
		require.Positive(t, u.median.Load())
	}
	require.Equal(t, int64(math.MaxInt64), u.median.Load())
}

// A duration counts as usual when no deadline has counted as a failure for usualEvery since.
func TestWhatIsLearnedIsKnownLater(t *testing.T) {
	var u usualDuration
	learn := func(at time.Duration, took, n int64) {
		u.add(took, n)
		u.confirm(int64(at), n)
	}
	learn(0, 100, 1)
	require.EqualValues(t, 100, u.known.Load(), "the first sample is known at once")
	learn(time.Second, 100, usualSamples)
	for n := range int64(100) {
		learn(2*time.Second, 1000, 100+n)
	}
	require.EqualValues(t, 100, u.known.Load())
	learn(11*time.Second, 1000, 300)
	require.EqualValues(t, 100, u.known.Load(), "now it is a candidate")
	u.pauseLearning(20 * time.Second)
	learn(31*time.Second, 100, 301)
	require.EqualValues(t, 100, u.known.Load(), "the candidate was learned before a deadline failed")
	learn(42*time.Second, 100, 302)
	require.EqualValues(t, 100, u.known.Load())
	for n := range int64(200) {
		learn(43*time.Second, 1000, 400+n)
	}
	learn(53*time.Second, 1000, 700)
	learn(64*time.Second, 1000, 701)
	require.Greater(t, u.known.Load(), int64(900))
}

func TestTheEstimateUsesOnlySuccessesAndPausesAfterACountedDeadline(t *testing.T) {
	b := New("b", Config{})
	p := b.phase.Load()
	learn := func(o Outcome, took, at time.Duration) int64 {
		b.learnDuration(p, o, took, at)
		return b.usual.median.Load()
	}
	for range usualSamples {
		learn(Success, 100, 0)
	}
	require.EqualValues(t, 100, learn(Failure, 1000, time.Second))
	b.usual.pauseLearning(20 * time.Second)
	require.EqualValues(t, 100, learn(Success, 1000, 30*time.Second-1))
	require.Greater(t, learn(Success, 1000, 30*time.Second), int64(100))
}
