package rows

import "github.com/weir-go/weir/bench/internal/measure"

// Row is one comparison.
type Row struct {
	Name                      string
	Weir, Peer                Side
	Serial                    float64 // the most that ours may cost, as a share of theirs; 0 where the row is for information
	Threads                   float64 // the same on two threads
	Goroutines8, Goroutines64 float64 // the same with many goroutines
	Writes                    []Write // those of a call of ours to words that all threads share; none where that is not asked
	Floor                     bool    // theirs is the bare machine, and no library
	Main                      bool    // belongs to the quick table too
	Why                       string  // what the figures do not tell: where the two differ, or why theirs is faster
}

// Bound is the row's bound in a mode, 0 where it has none.
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

// Minimum is the machine's part of ours: to write those words, with a reading of the clock before each. It is nil where
// that is not asked.
func (r Row) Minimum() measure.Loop {
	if len(r.Writes) == 0 {
		return nil
	}
	return writing(r.Writes)
}

// Side is one of two that are compared.
type Side struct {
	Name string // what is called, and whose it is
	Does string // for that price
	Make func() measure.Loop
}

// All lists the comparisons: those with bounds first. keys is how many live keys a keyed limiter has where there are
// many: a million, unless in a hurry.
func All(keys int) (all []Row) {
	for _, part := range [][]Row{breakers(), limiters(), keyed(keys), gates(), windows(), floors(), otherBreakers(), otherLimiters()} {
		all = append(all, part...)
	}
	return all
}
