package rows

import (
	"fmt"

	"github.com/weir-go/weir/dev/bench/internal/measure"
)

// Outcome is the result of a row.
type Outcome struct {
	Row
	Allocs Allocs
	Modes  []measure.Mode
	In     []measure.Comparison // one per element of Modes
}

// Allocs is the number of objects that one call of each side allocates.
type Allocs struct{ Weir, Peer int }

// Verdict returns the verdict for the i-th mode.
func (o Outcome) Verdict(i int) measure.Verdict { return o.In[i].Judge(o.Bound(o.Modes[i])) }

// Missed describes each mode in which the row missed its bound by more than the noise. A row with a
// serial bound must also not allocate in weir.
func (o Outcome) Missed() (faults []string) {
	for i, m := range o.Modes {
		if o.Verdict(i) == measure.Missed {
			ratio := measure.SpreadOf(o.In[i].Ratio)
			faults = append(faults, fmt.Sprintf("%s, %s: ratio %s, bound %.3g", o.Name, m, ratio, o.Bound(m)))
		}
	}
	if o.Serial > 0 && o.Allocs.Weir > 0 {
		faults = append(faults, fmt.Sprintf("%s: %d allocations per call, bound 0", o.Name, o.Allocs.Weir))
	}
	return faults
}

// Run measures a row in each mode, one after the other.
func Run(p measure.Plan, row Row, modes ...measure.Mode) (Outcome, error) {
	o := Outcome{Row: row, Modes: modes}
	weirLoop, peerLoop := row.Weir.Make(), row.Peer.Make()
	for _, m := range modes {
		c, err := p.Compare(m, weirLoop, peerLoop)
		if err != nil {
			return o, fmt.Errorf("%s, %s: %w", row.Name, m, err)
		}
		o.In = append(o.In, c)
	}
	o.Allocs = Allocs{measure.Allocs(weirLoop, p.Allocs), measure.Allocs(peerLoop, p.Allocs)}
	return o, nil
}

// Floor is the cost of a basic operation of the machine.
type Floor struct {
	Side
	Costs []measure.Spread // in ns, one per mode
}

// RunFloor measures a basic operation of the machine in each mode.
func RunFloor(p measure.Plan, side Side, modes ...measure.Mode) (Floor, error) {
	f, loop := Floor{Side: side}, side.Make()
	for _, m := range modes {
		cost, err := p.Cost(m, loop)
		if err != nil {
			return f, err
		}
		f.Costs = append(f.Costs, cost)
	}
	return f, nil
}

// attempts is the number of times that Doubled measures. Noise comes and goes, but a doubled cost
// stays.
const attempts = 3

// doubling is the factor by which the cost of a row may be above its bound before it counts as
// doubled. On different machines the ratios of a row differ by less than that.
const doubling = 1.7

// Doubled compares the fastest of many short turns of the two sides with the serial bound of the
// row, and reports whether the ratio is much above it each time. It works on a busy machine too.
func Doubled(p measure.Plan, row Row) (best float64, doubled bool, err error) {
	weirLoop, peerLoop := row.Weir.Make(), row.Peer.Make()
	for range attempts {
		c, err := p.Compare(measure.Serial, weirLoop, peerLoop)
		if err != nil {
			return 0, false, fmt.Errorf("%s: %w", row.Name, err)
		}
		if best = c.Best(); best <= doubling*row.Serial {
			return best, false, nil
		}
	}
	return best, true, nil
}
