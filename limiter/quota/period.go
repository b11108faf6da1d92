package quota

import (
	"time"
)

// Period is the time for which a quota is given. It is written as its text: "day", "week" or
// "month".
type Period string

// The periods. They begin at the first moment of a day in the zone of the quota: of any day, of a
// Monday, as in ISO 8601, or of the first day of a month.
const (
	Day   Period = "day"
	Week  Period = "week"
	Month Period = "month"
)

// calendar divides time into periods. It has no gaps: a period lasts until the next one begins.
type calendar struct {
	every Period
	zone  *time.Location
}

// span is one period: from start until before end.
type span struct{ start, end time.Time }

func (s span) contains(t time.Time) bool { return !t.Before(s.start) && t.Before(s.end) }

// at returns the period that contains t.
//
// If a clock is set back over midnight, the old date appears a second time. By then the new day has
// begun, and it does not end again.
func (c calendar) at(t time.Time) span {
	y, m, d := t.In(c.zone).Date()
	switch c.every {
	case Week:
		d -= int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday()+6) % 7
	case Month:
		d = 1
	case Day:
	}
	s := span{end: c.firstMoment(y, m, d)}
	for !t.Before(s.end) {
		switch c.every {
		case Week:
			d += 7
		case Month:
			m++
		case Day:
			d++
		}
		s = span{start: s.end, end: c.firstMoment(y, m, d)}
	}
	return s
}

// maxOffset is more than the zones of the tz database differ from UTC.
const maxOffset = 48 * time.Hour

// firstMoment returns the first moment at which the clocks of the zone show the date or a later
// one. It is not always midnight: clocks that are set forward at midnight begin the day at 1:00,
// and a zone that moves over the date line skips a whole day. So time.Date, which chooses one of
// two times, and a time between if there is none, does not help.
func (c calendar) firstMoment(y int, m time.Month, d int) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	for t, isFirst := midnight.Add(-maxOffset).In(c.zone), true; ; isFirst = false {
		// from t on, until the zone changes its offset
		_, offset := t.Zone()
		moment := midnight.Add(-time.Duration(offset) * time.Second)
		if moment.Before(t) && !isFirst {
			moment = t // the clocks were set forward, over midnight
		}
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// ZoneBounds ends each year after 365 days, but the offset does not change then.
			end = t.Add(time.Hour)
		}
		if end.IsZero() || moment.Before(end) {
			return moment.UTC()
		}
		t = end
	}
}
