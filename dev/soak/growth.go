package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// growth samples memory and goroutines over time.
type growth struct {
	began      time.Time
	hours      []float64
	heap       []float64 // MB in use after a collection
	goroutines []float64
}

func (g *growth) sample() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g.hours = append(g.hours, time.Since(g.began).Hours())
	g.heap = append(g.heap, float64(m.HeapAlloc)/(1<<20))
	g.goroutines = append(g.goroutines, float64(runtime.NumGoroutine()))
}

// slope returns the median of the slopes between all pairs of samples (Theil and Sen), which a few
// outliers do not change. It ignores the first half, in which everything fills up.
func (g *growth) slope(values []float64) float64 {
	var slopes []float64
	for i := len(values) / 2; i < len(values); i++ {
		for j := i + 1; j < len(values); j++ {
			slopes = append(slopes, (values[j]-values[i])/(g.hours[j]-g.hours[i]))
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2]
}

// The most that a value may grow in the second half of a run. The values vary by as much without a
// leak.
const (
	maxGainMB         = 20
	maxGainGoroutines = 50
)

func (g *growth) check(faults *faults) {
	n := len(g.hours)
	if n < 10 {
		return
	}
	half := g.hours[n-1] - g.hours[n/2]
	if gain := g.slope(g.heap) * half; gain > maxGainMB {
		faults.add("memory", "grew by %.1f MB in the second half: %.0f", gain, g.heap)
	}
	if gain := g.slope(g.goroutines) * half; gain > maxGainGoroutines {
		faults.add("goroutines", "grew by %.0f in the second half: %.0f", gain, g.goroutines)
	}
}

func (g *growth) String() string {
	last := len(g.hours) - 1
	if last < 0 {
		return "not sampled"
	}
	return fmt.Sprintf("heap %.1f MB (slope of the second half %+.1f MB/h), goroutines %.0f (%+.1f/h)",
		g.heap[last], g.slope(g.heap), g.goroutines[last], g.slope(g.goroutines))
}
