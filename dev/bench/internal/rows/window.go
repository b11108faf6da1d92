package rows

import (
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/window"
)

// windows compares counting over time with its minimum.
func windows() []Row {
	const why = "the floor has no window; weir also checks whether a bucket has ended"
	return []Row{
		{Name: "window: Counter.Add", Main: true, Serial: 1.25, Weir: counterAdds(), Peer: sinceAndAdd(), Floor: true, Why: why},
		{Name: "window: Calls.Record", Serial: 1.25, Weir: callsRecord(), Peer: sinceAndAdd(), Floor: true, Why: why},
	}
}

// counterAdds and callsRecord check their totals at the end, so that a lost addition would be an
// error.
func counterAdds() Side {
	return Side{"window.Counter.Add", "a sum over a rolling window of 10 × 1 s, and a total", func() measure.Loop {
		c := window.NewCounter(window.Config{})
		return func(n int) (right int) {
			before := c.Total()
			for range n {
				c.Add(1)
			}
			return min(int(c.Total()-before), n)
		}
	}}
}

func callsRecord() Side {
	return Side{"window.Calls.Record", "outcomes over a rolling window of 10 × 1 s, and their totals", func() measure.Loop {
		c := window.NewCalls(window.CallsConfig{})
		return func(n int) (right int) {
			before := c.Totals().Successes
			for range n {
				c.Record(window.Success, 0)
			}
			return min(int(c.Totals().Successes-before), n)
		}
	}}
}
