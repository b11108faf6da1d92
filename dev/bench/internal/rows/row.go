package rows

import "github.com/weir-go/weir/dev/bench/internal/measure"

// Row is one comparison.
type Row struct {
	Name       string
	Weir, Peer Side
	// Serial is the bound of weir's cost divided by the peer's, or 0 if the row is for information
	// only.
	Serial                    float64
	Threads                   float64 // the bound on two threads
	Goroutines8, Goroutines64 float64 // the bounds with 8 and with 64 goroutines
	Floor                     bool    // the peer is the machine, not a library
	Main                      bool    // the row is in the quick table too
	Why                       string  // how the sides differ, or why the peer is faster
}

// Bound returns the bound of the row in a mode, or 0 if it has none.
func (r Row) Bound(m measure.Mode) float64 {
	switch m {
	case measure.Serial:
		return r.Serial
	case measure.Threads:
		return r.Threads
	case measure.Goroutines8:
		return r.Goroutines8
	default:
		return r.Goroutines64
	}
}

// Side is one of the two sides of a comparison.
type Side struct {
	Name string // the function, and its library
	Does string // what one call does
	Make func() measure.Loop
}

// All returns the comparisons, first those with bounds. keys is the number of live keys of a keyed
// limiter with many keys, a million except in short runs.
func All(keys int) (all []Row) {
	for _, part := range [][]Row{breakers(), limiters(), keyed(keys), gates(), windows(), otherBreakers(), otherLimiters()} {
		all = append(all, part...)
	}
	return all
}
