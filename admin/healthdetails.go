package admin

import (
	"github.com/weir-go/weir/internal/adminhook"
)

// healthDetails is the answer to GET details.
type healthDetails struct {
	readiness

	Objects []objectHealth `json:"objects"`
}

// objectHealth is the entry of one object in the answer to GET details.
type objectHealth struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	// of a group, the number of members in each
	States        map[string]int `json:"states,omitempty"`
	Tripped       bool           `json:"tripped,omitempty"`
	InFlight      *int           `json:"in_flight,omitempty"`
	MaxConcurrent int            `json:"max_concurrent,omitempty"`
	Firing        *int           `json:"firing,omitempty"` // of a monitor, the number of alerts
}

func (h *Health) healthDetails() healthDetails {
	d := healthDetails{h.readiness(), []objectHealth{}}
	for _, o := range objects(h.sources) {
		d.Objects = append(d.Objects, healthOf(o))
	}
	return d
}

func healthOf(o adminhook.Object) objectHealth {
	d := objectHealth{Kind: o.Kind, Name: o.Name}
	if o.State != nil {
		d.State = o.State()
	}
	if o.Tripped != nil {
		d.Tripped = o.Tripped()
	}
	if s := o.Slots; s != nil {
		d.MaxConcurrent, _ = s.Limit.Get().V.(int)
		n := s.InFlight()
		d.InFlight = &n
	}
	if o.Monitor != nil {
		n := 0
		for _, a := range o.Monitor.Alerts() {
			if a.State == "firing" {
				n++
			}
		}
		d.Firing = &n
	}
	if o.Members == nil {
		return d
	}
	for _, m := range o.Members {
		if m.State == nil {
			return d // a group of limiters
		}
		if d.States == nil {
			d.States = map[string]int{}
		}
		d.States[m.State()]++
	}
	return d
}
