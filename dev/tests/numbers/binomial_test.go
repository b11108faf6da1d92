package numbers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// atLeast returns the probability that at least k of n calls fail, if each fails with probability
// p.
func atLeast(k, n int, p float64) (sum float64) {
	for i := k; i <= n; i++ {
		sum += math.Exp(logChoose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

func logChoose(n, k int) float64 {
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n + 1))
	return v
}

// callsToReach returns the lowest number of n calls that reaches a rate in percent.
func callsToReach(percent, n int) int { return (percent*n + 99) / 100 }

func TestBinomialByHand(t *testing.T) {
	require.InDelta(t, 0.5, atLeast(1, 1, 0.5), 1e-12)
	require.InDelta(t, 11.0/16, atLeast(2, 4, 0.5), 1e-12)
	require.InDelta(t, 0.1*0.1*0.1, atLeast(3, 3, 0.1), 1e-12)
	require.InDelta(t, 1, atLeast(0, 100, 0.3), 1e-9)
	require.Equal(t, 10, callsToReach(50, 20))
	require.Equal(t, 3, callsToReach(50, 5))
}

func TestMoreCallsOpenLessOften(t *testing.T) {
	for _, n := range minCalls {
		for _, p := range failureShares {
			least := atLeast(callsToReach(50, n), n, p)
			for more := n; more <= 500; more++ {
				require.LessOrEqual(t, atLeast(callsToReach(50, more), more, p), least*1.000001, "%d calls at %v", more, p)
			}
		}
	}
}
