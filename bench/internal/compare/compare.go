// Package compare runs the table of comparisons.
package compare

import (
	"fmt"

	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/bench/internal/rows"
)

// Outcome is what came of a row.
type Outcome struct {
	rows.Row
	Allocs Allocs
	Modes  []measure.Mode
	In     []measure.Comparison // one for each of Modes
}

// Allocs is how many objects one call of each side allocates.
type Allocs struct{ Ours, Theirs int }

// Verdict is that on the i-th of the modes.
func (o Outcome) Verdict(i int) measure.Verdict { return o.In[i].Judge(o.Bound(o.Modes[i])) }

// Missed says in which modes the row has missed its bound by more than the noise, and whether ours allocates where it has
// promised not to.
func (o Outcome) Missed() (faults []string) {
	for i, m := range o.Modes {
		if o.Verdict(i) == measure.Missed {
			ratio := measure.SpreadOf(o.In[i].Ratio)
			faults = append(faults, fmt.Sprintf("%s, %s: ratio %s, bound %.3g", o.Name, m, ratio, o.Bound(m)))
		}
	}
	if o.Serial > 0 && o.Allocs.Ours > 0 {
		faults = append(faults, fmt.Sprintf("%s: %d allocations a call, bound 0", o.Name, o.Allocs.Ours))
	}
	return faults
}

// allocsOf is how many calls are looked at to count what one allocates.
const allocsOf = 10_000

// Run measures a row in each of the modes, one after the other.
func Run(p measure.Plan, row rows.Row, modes ...measure.Mode) (Outcome, error) {
	o := Outcome{Row: row, Modes: modes}
	ours, theirs := row.Ours.Make(), row.Theirs.Make()
	for _, m := range modes {
		c, err := p.Compare(m, ours, theirs, row.Least())
		if err != nil {
			return o, fmt.Errorf("%s, %s: %w", row.Name, m, err)
		}
		o.In = append(o.In, c)
	}
	o.Allocs = Allocs{measure.Allocs(ours, allocsOf), measure.Allocs(theirs, allocsOf)}
	return o, nil
}
