package quota

import "time"

// PeriodAt returns the period that contains t.
func PeriodAt(every Period, zone *time.Location, t time.Time) (start, end time.Time) {
	s := calendar{every: every, zone: zone}.at(t)
	return s.start, s.end
}
