package guava_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A program reads a disk at a given pace, in requests of any size.
func Example() {
	disk := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(100_000)})
	began := time.Now()
	for _, pages := range []int{5000, 1, 1} { // the second waits for the cost of the first
		if err := disk.Wait(context.Background(), pages); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(time.Since(began) >= 50*time.Millisecond)
	// Output: true
}

func ExampleSmoothBursty() {
	s := guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4)}, noon)
	for _, n := range []int{10, 1, 1} {
		wait, _ := s.ReserveAt(noon, n, limiter.Never)
		fmt.Println(wait)
	}
	// Output:
	// 0s
	// 2.5s
	// 2.75s
}

func ExampleSmoothWarmingUp() {
	w := guava.NewSmoothWarmingUpAt(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(2), WarmUp: 4 * time.Second}, noon)
	now := noon
	for range 6 {
		wait, _ := w.ReserveAt(now, 1, limiter.Never)
		fmt.Println(wait)
		now = now.Add(wait)
	}
	// Output:
	// 0s
	// 1.375s
	// 1.125s
	// 875ms
	// 625ms
	// 500ms
}

// After any idle time, the permits of two seconds are stored.
func ExampleSmoothBurstyConfig() {
	s := guava.NewSmoothBurstyAt(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4), MaxBurst: 2 * time.Second}, noon)
	later := noon.Add(time.Hour)
	for _, n := range []int{8, 1, 1} {
		wait, _ := s.ReserveAt(later, n, limiter.Never)
		fmt.Println(wait)
	}
	// Output:
	// 0s
	// 0s
	// 250ms
}

// When cold, an interval is four times as long.
func ExampleSmoothWarmingUpConfig() {
	w := guava.NewSmoothWarmingUpAt(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(10), WarmUp: time.Second, ColdFactor: 4}, noon)
	w.ReserveAt(noon, 1, limiter.Never) // goes at once, and the next request pays for it
	wait, _ := w.ReserveAt(noon, 1, limiter.Never)
	fmt.Println(wait > 300*time.Millisecond, wait <= 400*time.Millisecond)
	// Output: true true
}
