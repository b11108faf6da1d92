// Package compare runs the comparisons.
package compare

import (
	"fmt"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
)

// Outcome is the result of a row.
type Outcome struct {
	rows.Row
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
func Run(p measure.Plan, row rows.Row, modes ...measure.Mode) (Outcome, error) {
	o := Outcome{Row: row, Modes: modes}
	weirLoop, peerLoop := row.Weir.Make(), row.Peer.Make()
	for _, m := range modes {
		c, err := p.Compare(m, weirLoop, peerLoop, row.Minimum())
		if err != nil {
			return o, fmt.Errorf("%s, %s: %w", row.Name, m, err)
		}
		o.In = append(o.In, c)
	}
	o.Allocs = Allocs{measure.Allocs(weirLoop, p.Allocs), measure.Allocs(peerLoop, p.Allocs)}
	return o, nil
}
