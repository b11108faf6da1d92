package breaker

import (
	"time"

	"github.com/weir-go/weir/internal/tally"
	"github.com/weir-go/weir/window"
)

// endedWindows holds the counts of windows that Reconfigure has ended. An endedWindows never
// changes.
type endedWindows struct {
	recent  []endedTally
	counts  tally.Counts    // the calls of earlier tallies
	latency *window.Latency // the durations of earlier tallies; nil for none
}

// endedTally is a tally that a goroutine may still record to, if it loaded the phase before the
// tally ended.
type endedTally struct {
	tally *tally.Calls
	at    time.Duration
}

// recordingTime is an upper bound of the time from loading the phase to recording a call.
const recordingTime = time.Minute

// withTally returns the ended windows with one more tally, which ended at the given time. For a
// tally that no goroutine can record to any more, only the totals are kept.
func (p endedWindows) withTally(t *tally.Calls, at time.Duration) endedWindows {
	next := endedWindows{counts: p.counts, latency: p.latency}
	for _, e := range p.recent {
		if at-e.at < recordingTime {
			next.recent = append(next.recent, e)
			continue
		}
		next.counts = next.counts.Plus(e.tally.Totals())
		if l := window.Latency(e.tally.LifetimeLatency()); l.Count() > 0 {
			sum := next.earlierLatency().Plus(l)
			next.latency = &sum
		}
	}
	next.recent = append(next.recent, endedTally{t, at})
	return next
}

func (p endedWindows) earlierLatency() (l window.Latency) {
	if p.latency != nil {
		l = *p.latency
	}
	return l
}

// totals returns all calls. ConsecutiveFailures is meaningless.
func (p endedWindows) totals() tally.Counts {
	sum := p.counts
	for _, e := range p.recent {
		sum = sum.Plus(e.tally.Totals())
	}
	return sum
}

// lifetimeLatency returns the durations of all calls.
func (p endedWindows) lifetimeLatency() window.Latency {
	sum := p.earlierLatency()
	for _, e := range p.recent {
		sum = sum.Plus(window.Latency(e.tally.LifetimeLatency()))
	}
	return sum
}
