package breaker

import (
	"slices"
	"time"

	"github.com/weir-go/weir/internal/report"
)

// maxIncidents is how many ended incidents a breaker remembers.
const maxIncidents = 8

// incidents are the spans of time from the opening of a breaker until calls passed as usual again.
// They never change: a transition makes new ones. Only openings and closings cost anything, and a
// breaker that never opened has none.
type incidents struct {
	began    time.Duration     // of the current incident
	openings int               // of the current incident; 0 for none
	cause    string            // of its first opening
	past     []report.Incident // the ended ones, the oldest first
}

// afterTransition returns the incidents after a transition from phase p at the given time. i is nil
// before the first opening.
func (i *incidents) afterTransition(c *Change, p *phase, at time.Duration, date func(time.Duration) time.Time) *incidents {
	if i == nil && p.state == Open { // Initial is Open
		i = &incidents{began: p.since, openings: 1, cause: p.reason}
	}
	trips, tripped := stateMachine[c.To].passes != allCalls, i != nil && i.openings > 0
	switch {
	case trips && !tripped:
		next := &incidents{began: at, openings: 1, cause: p.causeOf(c)}
		if i != nil {
			next.past = i.past
		}
		return next
	case c.To == Open || c.To == ForcedOpen:
		next := *i
		next.openings++
		return &next
	case !trips && tripped:
		ended := report.Incident{Began: date(i.began), Ended: date(max(at, i.began)), Openings: i.openings, Cause: i.cause}
		kept := i.past[max(len(i.past)-maxIncidents+1, 0):]
		return &incidents{past: append(slices.Clip(slices.Clone(kept)), ended)}
	}
	return i
}

// causeOf returns why an incident begins with a transition from p. If the transition ends an
// override, the cause is the reason why the breaker has opened underneath.
func (p *phase) causeOf(c *Change) string {
	if p.under != nil && !c.To.isOverride() {
		return p.under.reason
	}
	return c.Reason
}

// currentIncident returns the incident that has not ended yet. If there is none, its Openings is 0.
func (p *phase) currentIncident(date func(time.Duration) time.Time) report.Incident {
	if p.passes == allCalls || p.state == evicted {
		return report.Incident{}
	}
	if i := p.incidents; i != nil && i.openings > 0 {
		return report.Incident{Began: date(i.began), Openings: i.openings, Cause: i.cause}
	}
	return report.Incident{Began: date(p.since), Openings: 1, Cause: p.reason} // Initial is Open
}
