package rows

import (
	"github.com/weir-go/weir/bench/internal/measure"
	"github.com/weir-go/weir/window"
)

// windows compares counting over time with the least that it can cost.
func windows() []Row {
	const why = "the floor counts for ever; ours also looks whether a bucket is over"
	return []Row{
		{Name: "window: Counter.Add", Main: true, Serial: 1.25, Weir: counterAdds(), Peer: sinceAndAdd(), Floor: true, Why: why},
		{Name: "window: Calls.Record", Serial: 1.25, Weir: callsRecord(), Peer: sinceAndAdd(), Floor: true, Why: why},
	}
}

// counterAdds and callsRecord look at their totals in the end: an addition that was lost would be missing.
func counterAdds() Side {
	return Side{"window.Counter.Add", "a sum over a rolling 10 × 1 s, and its total", func() measure.Loop {
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
	return Side{"window.Calls.Record", "outcomes over a rolling 10 × 1 s, and their totals", func() measure.Loop {
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

// floors compares ours with nothing but the machine's parts; they have no bounds.
func floors() []Row {
	return []Row{
		{Name: "floor: time.Since by time.Now", Weir: sinceFloor(), Peer: nowFloor(), Floor: true, Why: "why everything here keeps an epoch"},
		{Name: "floor: atomic add by mutex", Weir: addFloor(), Peer: mutexFloor(), Floor: true, Why: "why everything here that can does without a lock"},
	}
}
