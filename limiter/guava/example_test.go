package guava_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/guava"
)

// A program reads a disk at a given pace, in requests of any size.
func Example() {
	began := time.Now() // before the limiter, which stores permits while it is idle
	disk := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(100_000)})
	for _, pages := range []int{5000, 1, 1} { // the second waits for the cost of the first
		if err := disk.Wait(context.Background(), pages); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(time.Since(began) >= 50*time.Millisecond)
	// Output: true
}

// A request of any size goes at once, and the next one pays for it.
func ExampleRateLimiter() {
	s := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4)})
	for _, n := range []int{10, 1, 1} {
		wait, _ := s.Reserve(n, limiter.Never)
		fmt.Println(wait.Round(250 * time.Millisecond))
	}
	// Output:
	// 0s
	// 2.5s
	// 2.75s
}

func ExampleNewSmoothWarmingUp() {
	w := guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(2), WarmUp: 4 * time.Second})
	var last time.Duration
	for range 6 {
		wait, _ := w.Reserve(1, limiter.Never)
		wait = wait.Round(125 * time.Millisecond)
		fmt.Println(wait - last)
		last = wait
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
	s := guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4), MaxBurst: 2 * time.Second})
	later := time.Now().Add(time.Hour)
	for _, n := range []int{8, 1, 1} {
		fmt.Println(s.TakeAt(later, n).OK)
	}
	// Output:
	// true
	// true
	// false
}

// When cold, an interval is four times as long.
func ExampleSmoothWarmingUpConfig() {
	w := guava.NewSmoothWarmingUp(guava.SmoothWarmingUpConfig{Rate: limiter.PerSecond(10), WarmUp: time.Second, ColdFactor: 4})
	w.Reserve(1, limiter.Never) // goes at once, and the next request pays for it
	wait, _ := w.Reserve(1, limiter.Never)
	fmt.Println(wait > 300*time.Millisecond, wait <= 400*time.Millisecond)
	// Output: true true
}
