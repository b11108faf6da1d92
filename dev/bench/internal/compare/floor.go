package compare

import (
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
)

// Floor is the cost of a basic operation of the machine.
type Floor struct {
	rows.Side
	Costs []measure.Spread // in ns, one per mode
}

// RunFloor measures a basic operation of the machine in each mode.
func RunFloor(p measure.Plan, side rows.Side, modes ...measure.Mode) (Floor, error) {
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
