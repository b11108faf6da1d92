package quota

import "time"

// PeriodAt returns the period that contains t.
func PeriodAt(every Period, zone *time.Location, t time.Time) (start, end time.Time) {
	s := calendar{every: every, zone: zone}.at(t)
	return s.start, s.end
}

// ClockShows tells the group that the wall clock shows t, which tests cannot set.
func (g *Group) ClockShows(t time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts.advance(t, true)
}
