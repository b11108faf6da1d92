package compare

import (
	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/bench/internal/rows"
)

// Floor is what a part of the machine costs.
type Floor struct {
	rows.Side
	Costs []measure.Spread // ns, one for each of the modes
}

// RunFloor measures a part of the machine in each of the modes.
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
