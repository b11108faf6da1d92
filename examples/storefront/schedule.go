package main

import "time"

// conduct is what the payment service does with a call.
type conduct uint8

const (
	answers conduct = iota
	failsHalf
	hangs
)

// phase is a stretch of the run.
type phase struct {
	name   string
	until  float64 // the share of the run at which it ends
	demand float64 // customers a second
	does   conduct // what the service does
	tells  string  // the same in words
}

// schedule says what happens when.
type schedule struct {
	run    time.Duration
	phases []phase
}

func newSchedule(run time.Duration) schedule {
	return schedule{run: run, phases: []phase{
		{"healthy", 0.12, 200, answers, "the service answers"},
		{"rush", 0.22, 500, answers, "more customers come than the limit lets through"},
		{"failing", 0.42, 200, failsHalf, "the service fails every other call"},
		{"hanging", 0.58, 200, hangs, "the service takes calls and does not answer"},
		{"recovered", 1, 200, answers, "the service answers again"},
	}}
}

// at returns the phase at a time since the start. The last one has no end.
func (s schedule) at(elapsed time.Duration) phase {
	for _, p := range s.phases {
		if elapsed < s.end(p) {
			return p
		}
	}
	return s.phases[len(s.phases)-1]
}

func (s schedule) end(p phase) time.Duration { return time.Duration(p.until * float64(s.run)) }

// begun lists the phases that have begun, as events.
func (s schedule) begun(elapsed time.Duration) []event {
	var events []event
	begin := time.Duration(0)
	for _, p := range s.phases {
		if elapsed >= begin {
			events = append(events, event{at: begin, text: p.name + ": " + p.tells})
		}
		begin = s.end(p)
	}
	return events
}

// crowd turns the demand, a rate, into customers.
type crowd struct {
	day  schedule
	last time.Duration
	part float64 // of the next customer
}

// lull is the longest time that is made up for: a program that was stopped does not come
// back to a queue of thousands.
const lull = 100 * time.Millisecond

// come returns how many customers have come since it was last asked.
func (c *crowd) come(elapsed time.Duration) int {
	since := min(elapsed-c.last, lull)
	c.last = elapsed
	c.part += c.day.at(elapsed).demand * since.Seconds()
	n := int(c.part)
	c.part -= float64(n)
	return n
}
