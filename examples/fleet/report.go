package main

import (
	"encoding/json"
	"io"
	"sync"
)

// message is a message of a process to its parent, one per line.
type message struct {
	Text     string   `json:"text,omitempty"`
	Alert    string   `json:"alert,omitempty"` // the ID of the alert
	Resolved bool     `json:"resolved,omitempty"`
	Sum      *summary `json:"sum,omitempty"` // the last message
}

// reporter writes messages.
type reporter struct {
	mu sync.Mutex
	to io.Writer
}

func (r *reporter) report(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(r.to).Encode(m) // an error means that the parent has ended
}

// summary holds the totals of a run, of one process or of all.
type summary struct {
	Processes      int64 `json:"processes"`
	Calls          int64 `json:"calls"`
	Succeeded      int64 `json:"succeeded"`
	Failed         int64 `json:"failed"`
	RefusedOpen    int64 `json:"refused_open"`
	RefusedLimited int64 `json:"refused_limited"`
	BreakersOpened int64 `json:"breakers_opened_by_the_fleet"`
	BreakersClosed int64 `json:"breakers_closed"`
	AlertsFired    int64 `json:"alerts_fired"`
	AlertsResolved int64 `json:"alerts_resolved"`
}

func (s summary) plus(o summary) summary {
	return summary{
		s.Processes + o.Processes, s.Calls + o.Calls, s.Succeeded + o.Succeeded, s.Failed + o.Failed,
		s.RefusedOpen + o.RefusedOpen, s.RefusedLimited + o.RefusedLimited,
		s.BreakersOpened + o.BreakersOpened, s.BreakersClosed + o.BreakersClosed,
		s.AlertsFired + o.AlertsFired, s.AlertsResolved + o.AlertsResolved,
	}
}

// collector collects the messages of all processes.
type collector struct {
	mu     sync.Mutex
	sum    summary
	firing map[string]map[int]bool // the processes in which an alert fires, by ID
}

func newCollector() *collector { return &collector{firing: map[string]map[int]bool{}} }

// add counts a message. An alert counts once, however many processes report it.
func (d *collector) add(process int, m message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Sum != nil {
		d.sum = d.sum.plus(*m.Sum)
		d.sum.Processes++
	}
	if m.Alert == "" {
		return
	}
	processes := d.firing[m.Alert]
	if processes == nil {
		processes = map[int]bool{}
		d.firing[m.Alert] = processes
	}
	if before := len(processes); !m.Resolved {
		processes[process] = true
		d.sum.AlertsFired += int64(1 - min(before, 1))
	} else if delete(processes, process); before == 1 && len(processes) == 0 {
		d.sum.AlertsResolved++
	}
}
