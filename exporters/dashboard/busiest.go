package dashboard

import (
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// maxBusiest is how many refused keys the page shows of a limiter.
const maxBusiest = 10

// busiestSource is a source that reports which keys it refuses most often, such as a limiter.Group,
// a weir.Group or a weirhttp.Limit.
type busiestSource interface {
	stat.Source
	Busiest(n int) []limiter.BusyKey
}

// busyRow is a refused key, as JSON.
type busyRow struct {
	Key     string `json:"key"`
	AtLeast int64  `json:"atLeast"` // refusals in the last 5 to 10 minutes
	AtMost  int64  `json:"atMost"`
}

// recordBusiest records the keys that a source refuses most often, by the names of its limiters.
func (x *extras) recordBusiest(source busiestSource) {
	rows := map[string][]busyRow{}
	for _, k := range source.Busiest(maxBusiest) {
		rows[k.Limiter] = append(rows[k.Limiter], busyRow{Key: truncateName(k.Key), AtLeast: k.AtLeast, AtMost: k.AtMost})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, list := range rows {
		s := subject{class: callsClass, name: name}
		if e := x.recorded[s]; x.recorded != nil {
			e.busiest = list
			x.recorded[s] = e
		}
	}
}

// busiestRows returns the busiest keys of the limiter, or nil.
func (e extra) busiestRows() []busyRow {
	return e.busiest[:min(len(e.busiest), maxBusiest)]
}
