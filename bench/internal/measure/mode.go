package measure

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Mode is how many goroutines share the work, on two cores.
type Mode int

// The modes that are measured. A crowd tells a lock from an atomic best: a goroutine that is put aside
// while it holds a lock holds up all others.
const (
	Serial  Mode = 1
	Threads Mode = 2
	Crowd   Mode = 8
	Horde   Mode = 64 // of callers of a server
)

// Modes lists those of what happens in the process.
func Modes() []Mode { return []Mode{Serial, Threads, Crowd} }

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

// Cost is nanoseconds for each of about n pieces of work that the goroutines share.
func (m Mode) Cost(loop Loop, n int) (ns float64, err error) {
	return Together(max(n/int(m), 1), slices.Repeat([]Loop{loop}, int(m))...)
}

// Enough is how many pieces of work take about as long as d.
func (m Mode) Enough(loop Loop, d time.Duration) (int, error) {
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

// quickest is the least cost of three tries, lest one that was held up makes the work look long.
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
