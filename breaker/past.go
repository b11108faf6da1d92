package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// past is what has been counted in windows of shapes that Reconfigure has ended. A past
// never changes.
type past struct {
	recent []ended
	counts tally.Counts    // of those before
	times  *window.Latency // nil where they timed nothing
}

// ended is a tally into which calls may still be booked by those who looked the phase up
// before the tally ended.
type ended struct {
	tally *tally.Calls
	at    time.Duration
}

// straggling is how long a call may be on the way from looking the phase up to its tally.
// There is nothing in between but the scheduler.
const straggling = time.Minute

// with returns the past with one tally more, of which the totals alone are kept when all
// calls have come that it may still get.
func (p past) with(t *tally.Calls, at time.Duration) past {
	next := past{counts: p.counts, times: p.times}
	for _, e := range p.recent {
		if at-e.at < straggling {
			next.recent = append(next.recent, e)
			continue
		}
		next.counts = next.counts.Plus(e.tally.Totals())
		if l := window.Latency(e.tally.LifetimeLatency()); l.Count() > 0 {
			sum := next.latency().Plus(l)
			next.times = &sum
		}
	}
	next.recent = append(next.recent, ended{t, at})
	return next
}

// latency returns the part of those that are not recent.
func (p past) latency() (l window.Latency) {
	if p.times != nil {
		l = *p.times
	}
	return l
}

// totals returns what has been counted in all; ConsecutiveFailures means nothing.
func (p past) totals() tally.Counts {
	sum := p.counts
	for _, e := range p.recent {
		sum = sum.Plus(e.tally.Totals())
	}
	return sum
}

// lifetimeLatency returns how long all calls took.
func (p past) lifetimeLatency() window.Latency {
	sum := p.latency()
	for _, e := range p.recent {
		sum = sum.Plus(window.Latency(e.tally.LifetimeLatency()))
	}
	return sum
}
