package main

import "time"

// behavior is how the payment service handles a call.
type behavior uint8

const (
	answers behavior = iota
	failsHalf
	hangs
)

// phase is a part of the run.
type phase struct {
	name        string
	until       float64  // the share of the run at which it ends
	demand      float64  // customers per second
	behavior    behavior // of the service
	description string   // of the phase
}

// lowRate is the limit in the last phase, below the demand.
const lowRate = "100/s"

// schedule lists the phases of a run.
type schedule struct {
	run    time.Duration
	phases []phase
}

func newSchedule(run time.Duration) schedule {
	return schedule{run: run, phases: []phase{
		{"healthy", 0.12, 200, answers, "the service answers"},
		{"rush", 0.22, 500, answers, "more customers come than the limit allows"},
		{"failing", 0.42, 200, failsHalf, "the service fails every other call"},
		{"hanging", 0.58, 200, hangs, "the service accepts calls but does not answer"},
		{"recovered", 0.82, 200, answers, "the service answers again"},
		{"limited", 1, 200, answers, "an operator lowers the limit in weir.yaml"},
	}}
}

// at returns the phase at a time since the start. The last phase has no end.
func (s schedule) at(elapsed time.Duration) phase {
	for _, p := range s.phases {
		if elapsed < s.end(p) {
			return p
		}
	}
	return s.phases[len(s.phases)-1]
}

func (s schedule) end(p phase) time.Duration { return time.Duration(p.until * float64(s.run)) }

// begunPhases returns the phases that have begun, as events.
func (s schedule) begunPhases(elapsed time.Duration) []event {
	var events []event
	begin := time.Duration(0)
	for _, p := range s.phases {
		if elapsed >= begin {
			events = append(events, event{at: begin, text: p.name + ": " + p.description})
		}
		begin = s.end(p)
	}
	return events
}

// arrivals turns the demand, a rate, into customers.
type arrivals struct {
	day  schedule
	last time.Duration
	part float64 // the part of the next customer that has arrived
}

// maxCatchUp is the longest time for which customers are created at once, so that a stopped program
// does not continue with thousands of customers.
const maxCatchUp = 100 * time.Millisecond

// next returns how many customers have come since the last call.
func (c *arrivals) next(elapsed time.Duration) int {
	since := min(elapsed-c.last, maxCatchUp)
	c.last = elapsed
	c.part += c.day.at(elapsed).demand * since.Seconds()
	n := int(c.part)
	c.part -= float64(n)
	return n
}
