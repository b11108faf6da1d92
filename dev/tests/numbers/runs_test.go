package numbers

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/cusum"
)

// failureProcess is a process in which failures come in clusters, as a Markov chain: the
// probability that a call fails after a failed call, and after one that succeeded.
type failureProcess struct{ again, first float64 }

// clusteredFailures returns failures that are a share of all calls and come in clusters of a mean
// length.
func clusteredFailures(share, length float64) failureProcess {
	return failureProcess{again: 1 - 1/length, first: share / (1 - share) / length}
}

// independentFailures returns failures that are independent of each other.
func independentFailures(share float64) failureProcess { return failureProcess{share, share} }

// callsUntil returns the mean number of calls until a score reaches a limit. A failure raises the
// score by 1, and a success lowers it by 1, but never below 0. The result is exact.
//
// Let F(s) and S(s) be that number after a failure and after a success, at the score s. Then
//
//	F(s) = 1 + again × F(s+1) + (1 − again) × S(s−1)
//	S(s) = 1 + first × F(s+1) + (1 − first) × S(s−1)
//
// with F(limit) = 0 and S(−1) = S(0). Solve for the differences S(0) − F(s+1) and S(0) − S(s), from
// s = 0 on.
func (f failureProcess) callsUntil(limit int) float64 {
	moreThanF, moreThanS := 1/f.first, 0.0 // F(1), S(0)
	for range limit - 1 {
		next := (moreThanF + 1 - (1-f.again)*moreThanS) / f.again
		moreThanS = f.first*next + (1-f.first)*moreThanS - 1
		moreThanF = next
	}
	return moreThanF
}

// windowSizes are numbers of calls in a window, with a description.
var windowSizes = []struct {
	calls int
	text  string
}{{2, "2: one call per 5 s"}, {10, "10: one per second"}, {100, "100: 10 per second"}, {2000, "2000: 200 per second"}}

// runsTable returns how many calls lie between two openings by chance if 20 % of the calls fail.
func runsTable() string {
	table := headerRow("calls in a window of 10 s", "run", "each by itself", "clusters of 2", "of 3", "of 5", "of 10")
	for _, w := range windowSizes {
		limit := 10 + w.calls/6
		cells := []any{w.text, limit, formatCalls(independentFailures(0.2).callsUntil(limit))}
		for _, length := range []float64{2, 3, 5, 10} {
			cells = append(cells, formatCalls(clusteredFailures(0.2, length).callsUntil(limit)))
		}
		table += row(cells...)
	}
	return table
}

// outagesTable returns after how many calls of an outage a breaker opens.
func outagesTable() string {
	table := headerRow("calls in a window of 10 s", "all fail", "80 % fail", "60 % fail")
	for _, w := range windowSizes {
		limit := 10 + w.calls/6
		mostFail, someFail := independentFailures(0.8), independentFailures(0.6)
		table += row(w.text, limit, formatCalls(mostFail.callsUntil(limit)), formatCalls(someFail.callsUntil(limit)))
	}
	return table
}

// formatCalls formats a number of calls.
func formatCalls(n float64) string {
	switch {
	case n < 9_950:
		return fmt.Sprintf("%.0f", n)
	case n > 1e15:
		return "> 10¹⁵"
	}
	digit, exp, _ := strings.Cut(fmt.Sprintf("%.0e", n), "e+")
	return digit + "·10" + superscript(strings.TrimPrefix(exp, "0"))
}

// TestMeanCallsByHandAndBySimulation compares the exact numbers with a closed form, with Lorden's
// bound, and with random calls that the rule of the breaker judges.
func TestMeanCallsByHandAndBySimulation(t *testing.T) {
	require.InDelta(t, 1/0.2, independentFailures(0.2).callsUntil(1), 1e-9)
	require.InDelta(t, 1/0.2+1/0.04, independentFailures(0.2).callsUntil(2), 1e-9, "a success after the first failure starts again")
	for limit := 1; limit < 30; limit++ {
		power, exact := 1.0, independentFailures(0.2).callsUntil(limit)
		for range limit {
			power *= 4
		}
		require.GreaterOrEqual(t, exact, power, "Lorden's bound")
		require.InEpsilon(t, 5.0/3*(4.0/3*(power-1)-float64(limit)), exact, 1e-9)
	}
	r := rand.New(rand.NewPCG(6, 7))
	for _, f := range []failureProcess{independentFailures(0.2), independentFailures(0.6), clusteredFailures(0.2, 2), clusteredFailures(0.2, 5)} {
		const trials, limit = 3000, 4
		rule, calls := cusum.NewRule(1e9/2, limit), 0
		for range trials {
			for n, failed := cusum.Run(0), false; !rule.Reached(n, 0); calls++ {
				p := f.first
				if failed {
					p = f.again
				}
				failed = r.Float64() < p
				n = rule.Next(n, failed)
			}
		}
		require.InEpsilon(t, f.callsUntil(limit), float64(calls)/trials, 0.06, "%v", f)
	}
}

// TestARunOpensAfterAsManyCallsAsTheTableSays makes as many calls per second as each row says,
// which all fail.
func TestARunOpensAfterAsManyCallsAsTheTableSays(t *testing.T) {
	for _, w := range windowSizes {
		every := 10 * time.Second / time.Duration(w.calls)
		limit := float64(10 + w.calls/6)
		// the next call is refused
		got := float64(opensAfter(t, breaker.Config{Cooldown: time.Hour}, every)/every) - 1
		// the window may lack a bucket
		require.InDelta(t, limit, got, 1+0.05*limit, "%s", w.text)
		require.Equal(t, time.Hour, opensAfter(t, breaker.Config{FailureRun: breaker.Off, MinCalls: 10_000}, every).Truncate(time.Hour))
	}
}

// TestAClusterOfFailuresShorterThanASixthOfTheWindowOpensNothing fails calls for 1.4 s, every 5 s
// for an hour.
func TestAClusterOfFailuresShorterThanASixthOfTheWindowOpensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := breaker.New("b", breaker.Config{}), time.Now()
		for time.Since(began) < time.Hour {
			permit, err := b.Allow()
			require.NoError(t, err)
			o := breaker.Success
			if since := time.Since(began); since > 10*time.Second && since%(5*time.Second) < 1400*time.Millisecond {
				o = breaker.Failure
			}
			permit.Record(t.Context(), nil, o)
			time.Sleep(5 * time.Millisecond)
		}
	})
}
