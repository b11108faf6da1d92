package numbers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// probeRule returns the decision after the results of probes so far, or "" if there is none yet.
type probeRule func(failures, successes int) string

const reopens, recovers = "reopens", "recovers"

// ruleAfterAll decides by the rate of a number of results.
func ruleAfterAll(probes int) probeRule {
	return func(failures, successes int) string {
		switch {
		case failures+successes < probes:
			return ""
		case 2*failures >= probes:
			return reopens
		}
		return recovers
	}
}

// ruleAfterRun is like ruleAfterAll, but for a breaker that a run of failures has opened.
func ruleAfterRun(probes int) probeRule {
	all := ruleAfterAll(probes)
	return func(failures, successes int) string {
		if failures > 0 && successes == 0 {
			return reopens
		}
		return all(failures, successes)
	}
}

// sequentialRule is Wald's sequential probability ratio test between 20 % and 80 %. Each result
// changes the logarithm of the ratio by ±ln 4, so the test ends when failures and successes differ
// by bound, or after the given number of results.
func sequentialRule(bound, most int) probeRule {
	return func(failures, successes int) string {
		switch d := failures - successes; {
		case d >= bound:
			return reopens
		case -d >= bound:
			return recovers
		case failures+successes < most:
			return ""
		}
		return ruleAfterAll(most)(failures, successes)
	}
}

// probabilities returns the probability that the rule lets the breaker recover, and how many probes
// it takes on average, if a share of the calls fails, each by itself.
func (r probeRule) probabilities(failing float64) (recovery, probes float64) {
	type results struct{ failures, successes int }
	open := map[results]float64{{}: 1}
	for n := 1; len(open) > 0 && n < 500; n++ {
		next := map[results]float64{}
		for k, p := range open {
			for after, p := range map[results]float64{
				{k.failures + 1, k.successes}: p * failing,
				{k.failures, k.successes + 1}: p * (1 - failing),
			} {
				switch r(after.failures, after.successes) {
				case "":
					next[after] += p
				case recovers:
					recovery += p
					fallthrough
				default:
					probes += p * float64(n)
				}
			}
		}
		open = next
	}
	return recovery, probes
}

// sequentialTable compares how the breaker judges probes with sequential tests.
func sequentialTable() string {
	table := headerRow("rule", "recovers at 80 %", "reopens at 20 %", "probes on average, at 80 % and 20 %")
	for _, c := range []struct {
		name string
		rule probeRule
	}{
		{"3 probes", ruleAfterAll(3)},
		{"3 probes after a run of failures", ruleAfterRun(3)},
		{"5 probes", ruleAfterAll(5)},
		{"sequential test", sequentialRule(2, 1000)},
		{"sequential test, at most 3", sequentialRule(2, 3)},
		{"sequential test, at most 5", sequentialRule(2, 5)},
	} {
		recovery, bad := c.rule.probabilities(0.8)
		recovered, good := c.rule.probabilities(0.2)
		table += row(c.name, formatProbability(recovery), formatProbability(1-recovered), fmt.Sprintf("%.1f, %.1f", bad, good))
	}
	return table
}

// TestProbesAreJudgedAsInTheTable plays every sequence of results of three probes.
func TestProbesAreJudgedAsInTheTable(t *testing.T) {
	for _, byRun := range []bool{false, true} {
		rule := ruleAfterAll(3)
		if byRun {
			rule = ruleAfterRun(3)
		}
		for sequence := range 8 {
			synctest.Test(t, func(t *testing.T) {
				b := openBreaker(t, byRun)
				failures, successes := 0, 0
				for i := 0; rule(failures, successes) == ""; i++ {
					p, err := b.Allow()
					require.NoError(t, err)
					require.Equal(t, breaker.HalfOpen, b.State())
					outcome := breaker.Success
					if sequence>>i&1 == 1 {
						outcome = breaker.Failure
						failures++
					} else {
						successes++
					}
					p.Record(t.Context(), nil, outcome)
				}
				want := breaker.Recovering
				if rule(failures, successes) == reopens {
					want = breaker.Open
				}
				require.Equal(t, want, b.State(), "byRun %t, sequence %03b", byRun, sequence)
			})
		}
	}
}

// openBreaker returns a breaker whose cooldown is over, opened by its failure rate or by a run of
// rare failures.
func openBreaker(t *testing.T, byRun bool) *breaker.Breaker {
	t.Helper()
	c, gap := breaker.Config{FailureRun: breaker.Off}, time.Millisecond
	if byRun {
		c, gap = breaker.Config{}, 20*time.Second
	}
	b := breaker.New("b", c)
	for b.State() == breaker.Closed {
		time.Sleep(gap)
		p, err := b.Allow()
		require.NoError(t, err)
		p.Record(t.Context(), nil, breaker.Failure)
	}
	time.Sleep(time.Minute)
	return b
}
