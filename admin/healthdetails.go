package admin

import "github.com/weir-go/weir/alert"

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

func healthOf(o object) objectHealth {
	d := objectHealth{Kind: o.Kind, Name: o.Name}
	if o.State != nil {
		d.State = o.State()
	}
	if o.Tripped != nil {
		d.Tripped = o.Tripped()
	}
	if o.Bound != nil {
		n, _, configured := o.Bound()
		d.InFlight, d.MaxConcurrent = &n, configured
	}
	if o.Monitor != nil {
		n := 0
		for _, a := range o.Monitor.Alerts() {
			if a.State == alert.Firing {
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
