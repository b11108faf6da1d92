package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// sample is what was measured in one round.
type sample struct {
	perSecond float64
	p50, p99  time.Duration
}

// measure has callers ask one contender for a while.
func measure(ctx context.Context, c contender, callers int, span time.Duration) (sample, error) {
	waits := make([][]time.Duration, callers)
	faults := make([]error, callers)
	var g sync.WaitGroup
	start := time.Now()
	for i := range callers {
		g.Go(func() {
			for before := time.Now(); before.Sub(start) < span && faults[i] == nil; {
				faults[i] = c.take(ctx, i)
				after := time.Now()
				waits[i] = append(waits[i], after.Sub(before))
				before = after
			}
		})
	}
	g.Wait()
	took := time.Since(start)
	all := slices.Concat(waits...)
	slices.Sort(all)
	for _, err := range faults {
		if err != nil {
			return sample{}, err
		}
	}
	return sample{perSecond: float64(len(all)) / took.Seconds(), p50: all[len(all)/2], p99: all[len(all)*99/100]}, nil
}

func median[T int64 | float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

func perSecond(m []sample) float64 {
	var all []float64
	for _, s := range m {
		all = append(all, s.perSecond)
	}
	return median(all)
}

func p50(m []sample) time.Duration {
	var all []time.Duration
	for _, s := range m {
		all = append(all, s.p50)
	}
	return median(all).Round(time.Microsecond / 10)
}

func p99(m []sample) time.Duration {
	var all []time.Duration
	for _, s := range m {
		all = append(all, s.p99)
	}
	return median(all).Round(time.Microsecond / 10)
}

// ratio is the median of the ratios of each round.
func ratio(m, to []sample) float64 {
	var all []float64
	for i := range m {
		all = append(all, m[i].perSecond/to[i].perSecond)
	}
	return median(all)
}
