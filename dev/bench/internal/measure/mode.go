package measure

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Mode is the number of goroutines that share the operations, on two cores.
type Mode int

// The measured modes. Eight goroutines on two cores show best whether code uses a lock or atomics:
// a goroutine that loses its core while it holds a lock delays all others.
const (
	Serial       Mode = 1
	Threads      Mode = 2
	Goroutines8  Mode = 8
	Goroutines64 Mode = 64 // only for callers of a server
)

// Modes returns the modes for operations inside the process.
func Modes() []Mode { return []Mode{Serial, Threads, Goroutines8} }

func (m Mode) String() string {
	switch m {
	case Serial:
		return "serial"
	case Threads:
		return "2 threads"
	default:
		return fmt.Sprintf("%d goroutines on 2 cores", int(m))
	}
}

// Cost returns the nanoseconds per operation. The goroutines share about n operations.
func (m Mode) Cost(loop Loop, n int) (ns float64, err error) {
	return RunTogether(max(n/int(m), 1), slices.Repeat([]Loop{loop}, int(m))...)
}

// CountFor returns the number of operations that take about d.
func (m Mode) CountFor(loop Loop, d time.Duration) (int, error) {
	for n := 16; ; n *= 4 {
		ns, err := m.quickest(loop, n)
		if err != nil {
			return 0, err
		}
		if took := ns * float64(n); took > float64(d)/4 {
			return max(int(float64(d)/ns), int(m)), nil
		}
	}
}

// quickest returns the lowest cost of three tries, because a delayed try would make the operation
// look slow.
func (m Mode) quickest(loop Loop, n int) (ns float64, err error) {
	ns = math.Inf(1)
	for range 3 {
		cost, err := m.Cost(loop, n)
		if err != nil {
			return 0, err
		}
		ns = min(ns, cost)
	}
	return ns, nil
}
