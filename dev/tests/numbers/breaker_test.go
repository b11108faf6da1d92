package numbers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

var (
	minCalls      = []int{6, 10, 20, 50, 100}
	failureShares = []float64{0.01, 0.05, 0.10, 0.20}
	t0            = time.Unix(0, 0)
)

// tripsTable returns the probability that a breaker at 50 % opens by chance.
func tripsTable() string {
	table := headerRow("calls in the window", "1 % fail", "5 %", "10 %", "20 %")
	for _, n := range minCalls {
		cells := []any{n}
		for _, p := range failureShares {
			cells = append(cells, formatProbability(atLeast(callsToReach(50, n), n, p)))
		}
		table += row(cells...)
	}
	return table
}

// probesTable returns the probability that probes close a breaker at 50 %.
func probesTable() string {
	share := []float64{0.01, 0.10, 0.50, 0.90}
	table := headerRow("Probes", "1 % fail", "10 %", "50 %", "90 %")
	for _, n := range []int{1, 3, 5, 10} {
		cells := []any{n}
		for _, p := range share {
			cells = append(cells, formatProbability(1-atLeast(callsToReach(50, n), n, p)))
		}
		table += row(cells...)
	}
	return table
}

// cooldownsTable returns when a breaker probes a service that stays down, and the load of the
// probes.
func cooldownsTable() string {
	table := headerRow("Cooldown, factor, cap", "tries again after", "later every", "100 clients with 3 probes send")
	for _, c := range []breaker.Config{
		{Cooldown: time.Second},
		{Cooldown: 5 * time.Second},
		{Cooldown: 5 * time.Second, CooldownFactor: 2, MaxCooldown: time.Minute},
		{Cooldown: 30 * time.Second},
	} {
		at, gaps := probeTimes(c, 7)
		last := gaps[len(gaps)-1]
		name := fmt.Sprintf("%v", c.Cooldown)
		if c.CooldownFactor > 1 {
			name += fmt.Sprintf(", %v, %v", c.CooldownFactor, c.MaxCooldown)
		}
		table += row(name, formatSeconds(at[:4])+" …", last, fmt.Sprintf("%.0f a second", 300/last.Seconds()))
	}
	return table
}

// probeTimes returns the times of the probes in a long outage, and the gaps between them. It runs
// in a bubble.
func probeTimes(c breaker.Config, n int) (at, gaps []time.Duration) {
	c.Probes, c.MinCalls = 1, 1
	b, began := breaker.New("down", c), time.Now()
	for len(at) < n {
		permit, err := b.Allow()
		if err == nil {
			if since := time.Since(began); since > 0 {
				gaps = append(gaps, since-totalGap(gaps))
				at = append(at, since)
			}
			permit.Record(context.Background(), nil, breaker.Failure)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return at, gaps
}

func totalGap(gaps []time.Duration) (all time.Duration) {
	for _, d := range gaps {
		all += d
	}
	return all
}

func formatSeconds(list []time.Duration) (s string) {
	for n, d := range list {
		if n > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%.0f", d.Seconds())
	}
	return s + " s"
}

// opensAfter returns how long a breaker takes to open under steady traffic if every call fails.
func opensAfter(t *testing.T, c breaker.Config, every time.Duration) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		b, began := breaker.New("b", c), time.Now()
		call := func(o breaker.Outcome) bool {
			permit, err := b.Allow()
			if err == nil {
				permit.Record(t.Context(), nil, o)
			}
			time.Sleep(every)
			return err == nil
		}
		for time.Since(began) < time.Minute {
			call(breaker.Success)
		}
		began = time.Now()
		for call(breaker.Failure) && time.Since(began) < time.Hour {
		}
		took = time.Since(began)
	})
	return took
}

func TestAnOutageOpensAfterFailureRateTimesWindow(t *testing.T) {
	for _, rate := range []float64{0.2, 0.5, 0.8} {
		for _, window := range []time.Duration{10 * time.Second, time.Minute} {
			got := opensAfter(t, breaker.Config{FailureRate: rate, Window: window, FailureRun: breaker.Off}, 100*time.Millisecond)
			require.InDelta(t, rate*window.Seconds(), got.Seconds(), window.Seconds()/10, "%v of %v", rate, window)
		}
	}
}

func TestBelowMinCallsNoRateOpens(t *testing.T) {
	const every = 530 * time.Millisecond // at most 19 calls in 10 s
	require.GreaterOrEqual(t, opensAfter(t, breaker.Config{FailureRun: breaker.Off}, every), time.Hour)
	require.Equal(t, 6*every, opensAfter(t, breaker.Config{FailureRun: breaker.Off, ConsecutiveFailures: 5}, every), "the sixth call is refused")
}

func TestFailuresInARowByChance(t *testing.T) {
	const day = 86_400
	require.InDelta(t, 0.027, day*atLeast(5, 5, 0.05), 0.0005)
	require.InDelta(t, 0.86, day*atLeast(5, 5, 0.10), 0.005)
}

// TestABreakerForTwoCallsPerMinute makes two calls per minute to a service that is down for about
// an hour, and then back.
func TestABreakerForTwoCallsPerMinute(t *testing.T) {
	for name, c := range map[string]struct {
		config  breaker.Config
		opens   int // failures until it opens
		reached int // calls of an hour that the service gets
		back    int // calls until one succeeds, at most
	}{
		"default": {breaker.Config{}, 10, 10 + 110/8 + 1, 8},
		"set":     {breaker.Config{ConsecutiveFailures: 4, Cooldown: 2 * time.Minute, Probes: 1, Recovery: breaker.Off}, 4, 4 + 116/4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			longest := 0
			for outage := 120; outage < 128; outage++ {
				synctest.Test(t, func(t *testing.T) {
					b := breaker.New("b", c.config)
					call := func(o breaker.Outcome) bool {
						permit, err := b.Allow()
						if err == nil {
							permit.Record(t.Context(), nil, o)
						}
						time.Sleep(30 * time.Second)
						return err == nil
					}
					opens, reached := 1, 0
					for n := range outage {
						if call(breaker.Failure) && n < 120 {
							reached++
						}
						if !b.Tripped() {
							opens++
						}
					}
					require.Equal(t, c.opens, opens)
					require.Equal(t, c.reached, reached)
					back := 1
					for !call(breaker.Success) {
						back++
					}
					longest = max(longest, back)
				})
			}
			require.Equal(t, c.back, longest)
		})
	}
}
