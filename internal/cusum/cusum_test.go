package cusum_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/cusum"
	"github.com/weir-go/weir/internal/testenv"
)

const fixedPointOne = 1_000_000_000

// likelihood returns the highest log-likelihood ratio of any number of last calls, at least 0: of
// the failure rate bad against the rate good.
func likelihood(calls []bool, good, bad float64) (highest float64) {
	sum := 0.0
	for _, failed := range slices.Backward(calls) {
		if failed {
			sum += math.Log(bad / good)
		} else {
			sum += math.Log((1 - bad) / (1 - good))
		}
		highest = max(highest, sum)
	}
	return highest
}

// TestTheScoreIsALogLikelihoodRatio compares the run after each of random calls with the
// likelihoods of all calls so far, which is the definition of the cumulative sum.
func TestTheScoreIsALogLikelihoodRatio(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rate := range []float64{0.05, 0.25, 1.0 / 3, 0.5, 0.57, 0.9} {
		for _, good := range []float64{0.1 * rate, 0.4 * rate, 0.9 * rate} {
			x := cusum.Exponent(good, rate)
			bad := good * math.Exp(x)
			require.Greater(t, bad, rate)
			require.Less(t, bad, 1.0)
			rule := cusum.NewRule(int64(rate*fixedPointOne), 10)
			var n cusum.Run
			var calls []bool
			for range 400 {
				failed := r.Float64() < rate
				calls = append(calls, failed)
				n = rule.Next(n, failed)
				want := likelihood(calls, good, bad)
				require.InDelta(t, want, x*cusum.Score(n, rate), 1e-5, "rate %v, good %v", rate, good)
				if math.Abs(want-10*x) > 1e-3 {
					require.Equal(t, want > 10*x, rule.Reached(n, 0), "rate %v, good %v, score %v", rate, good, want/x)
				}
			}
		}
	}
}

func TestAFailureAtTwentyPercentIsWorthLogFour(t *testing.T) {
	require.InDelta(t, math.Log(4), cusum.Exponent(0.2, 0.5), 1e-9)
	require.InDelta(t, math.Log(19), cusum.Exponent(0.05, 0.5), 1e-9)
	require.InDelta(t, -math.Log(0.4), cusum.Exponent(0.4, 1), 1e-9, "at a rate of 1 a success undoes everything")
	require.Equal(t, int64(10), cusum.Least(1e6, 0.2, 0.5), "4¹⁰ = 1,048,576")
}

func TestARunByHand(t *testing.T) {
	rule := cusum.NewRule(fixedPointOne/2, 3)
	var n cusum.Run
	for i, step := range []struct {
		failed          bool
		calls, failures int64
		reached         bool
	}{
		{false, 0, 0, false},
		{true, 1, 1, false},
		{false, 0, 0, false},
		{true, 1, 1, false},
		{true, 2, 2, false},
		{false, 3, 2, false},
		{true, 4, 3, false},
		{true, 5, 4, true},
		{false, 6, 4, false},
		{false, 7, 4, false},
		{false, 0, 0, false},
	} {
		n = rule.Next(n, step.failed)
		require.Equal(t, step.calls, n.Calls(), "step %d", i)
		require.Equal(t, step.failures, n.Failures(), "step %d", i)
		require.Equal(t, step.reached, rule.Reached(n, 0), "step %d", i)
		require.False(t, rule.Reached(n, 1), "step %d", i)
	}
}

func TestARateOfOneCountsConsecutiveFailures(t *testing.T) {
	rule, n := cusum.NewRule(fixedPointOne, 2), cusum.Run(0)
	n = rule.Next(n, true)
	require.False(t, rule.Reached(n, 0))
	n = rule.Next(n, true)
	require.True(t, rule.Reached(n, 0))
	require.Zero(t, rule.Next(n, false))
}

func TestALongRunBeginsAnewAndNeverOverflows(t *testing.T) {
	rule := cusum.NewRule(fixedPointOne/2, math.MaxInt64/4)
	n := cusum.Run(1<<31-1)<<32 | (1<<31 - 1)
	n = rule.Next(n, true)
	require.Equal(t, int64(1<<31), n.Calls())
	require.False(t, rule.Reached(n, math.MaxInt32))
	require.Zero(t, rule.Next(n, true))
	require.Zero(t, rule.Next(n, false))

	tiny := cusum.NewRule(1, 1)
	full := cusum.Run(1)<<32 | 1<<31
	require.Zero(t, tiny.Next(full, false))
	require.True(t, cusum.NewRule(1, 1).Reached(cusum.Run(1<<31)<<32|1<<31, 0))
}

// TestCountedTogether adds calls from many goroutines. At a rate of a billionth the first failure
// begins a run that no success ends, so that all calls after it must be in the run.
func TestCountedTogether(t *testing.T) {
	const goroutines = 4
	each := testenv.Repeat(100_000, 20_000)
	rule := cusum.NewRule(1, math.MaxInt32)
	var c cusum.Counter
	c.Add(rule, true)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			last := cusum.Run(0)
			for i := range each {
				n := c.Add(rule, i%4 == g)
				if n.Calls() <= last.Calls() || n.Failures() < last.Failures() {
					t.Errorf("a run of %d calls and %d failures after one of %d and %d", n.Calls(), n.Failures(), last.Calls(), last.Failures())
				}
				last = n
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(goroutines*each+1), c.Load().Calls())
	require.Equal(t, int64(goroutines*each/4+1), c.Load().Failures())
	c.Clear()
	require.Zero(t, c.Load())
	require.Zero(t, c.Add(rule, false), "a success does not begin a run")
}
