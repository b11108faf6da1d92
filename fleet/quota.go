package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter/quota"
)

// CalendarQuota allows Limit tokens per key in each day, week or month of a time zone, by the
// server's clock. It is the quota of package quota for many processes, and its periods begin and
// end as there. Tokens that are left at the end of a period are gone. So are debts: what was used
// beyond the quota counts only in the period in which it was charged. Tokens of an earlier period
// cannot be given back.
//
// Redis keeps a key until its period ends, so a restart of a process gives no token twice. If the
// clock of the server is set back into the period before, the later period goes on. If it is set
// back further, what was used counts in the period that the clock shows then.
//
// Processes need the same Every and Zone. If you change the Zone, or if the processes know
// different rules of it, each key finishes the period that it is in. If Every becomes longer, what
// was used in the present period still counts, as far as it is known. If it becomes shorter, a new
// period begins.
type CalendarQuota struct {
	// Limit is the maximum number of tokens in a period, from 1 to 2^31-1. Required.
	Limit int
	// Every is the period: quota.Day, quota.Week or quota.Month. Required.
	Every quota.Period
	// Zone is the time zone in which periods begin. Default UTC.
	Zone *time.Location
}

// longestPeriods are the lengths of the periods in days, of a month the greatest. With these,
// FailLocal never has a higher rate than the quota.
var longestPeriods = map[quota.Period]time.Duration{quota.Day: 1, quota.Week: 7, quota.Month: 31}

func (q CalendarQuota) compile() (limitSpec, error) {
	var faults []error
	if q.Limit < 1 || q.Limit > math.MaxInt32 {
		faults = append(faults, fmt.Errorf("fleet: Limit is %d, must lie between 1 and %d", q.Limit, math.MaxInt32))
	}
	days, known := longestPeriods[q.Every]
	if !known {
		faults = append(faults, fmt.Errorf("fleet: Every is %q, must be %q, %q or %q", string(q.Every), quota.Day, quota.Week, quota.Month))
	}
	s := windowSpec("calendarquota", q.Limit, days*24*time.Hour)
	s.periods = &periods{every: q.Every, zone: cmp.Or(q.Zone, time.UTC)}
	return s, errors.Join(faults...)
}

// periods computes the periods that the script of a calendar quota needs, because the server does
// not know time zones.
type periods struct {
	every quota.Period
	zone  *time.Location
	// ahead is how far the server's clock is ahead of this process's clock, if it was outside of
	// the periods that the script had got. Otherwise it is 0.
	ahead atomic.Int64
	last  atomic.Pointer[boundaries]
}

// boundaries are the starts of the period before, of the present one and of the next one, and the
// end of that, in µs. So the clock of the server may differ by a period.
type boundaries [4]int64

// around returns the boundaries around a time, or around now if it is zero.
func (p *periods) around(at time.Time) *boundaries {
	if at.IsZero() {
		at = time.Now().Add(time.Duration(p.ahead.Load()))
	}
	b, now := p.last.Load(), at.UnixMicro()
	if b != nil && isWithin(now, b[1], b[2]-1) {
		return b
	}
	period := func(t time.Time) (start, end time.Time) { return p.every.Inside(friend.Key{}).At(t, p.zone) }
	start, end := period(at)
	before, _ := period(start.Add(-1))
	_, after := period(end)
	b = &boundaries{before.UnixMicro(), start.UnixMicro(), end.UnixMicro(), after.UnixMicro()}
	p.last.Store(b)
	return b
}

// outsideValue is the first number of a reply of a script whose periods do not contain the time of
// the server, which is the second number.
const outsideValue = -2

// adjustPeriods reports whether a reply says that the time of the server is outside of the periods
// that the script had got. If so, the next request has the periods around the time of the server.
func adjustPeriods(limits []limitSpec, reply []int64) bool {
	if len(reply) != 2 || reply[0] != outsideValue || !isWithin(reply[1], 0, maxMicros) {
		return false
	}
	ahead := time.Until(time.UnixMicro(reply[1]))
	for _, s := range limits {
		if s.periods != nil {
			s.periods.ahead.Store(int64(ahead))
		}
	}
	return true
}

// text returns the text of a valid quota. A zone has a text if it is in the tz database.
func (q CalendarQuota) text() (string, error) {
	text := fmt.Sprintf("calendar-quota %d/%s", q.Limit, q.Every)
	zone := cmp.Or(q.Zone, time.UTC)
	if zone == time.UTC {
		return text, nil
	}
	if known, err := time.LoadLocation(zone.String()); err != nil || zone == time.Local || !haveSameOffsets(known, zone) {
		return "", fmt.Errorf("fleet: the zone %s of a CalendarQuota has no text", zone)
	}
	return text + " zone " + zone.String(), nil
}

// haveSameOffsets tells a zone of the tz database from a time.FixedZone of the same name. It looks
// at a summer and a winter.
func haveSameOffsets(a, b *time.Location) bool {
	for _, month := range []time.Month{time.January, time.July} {
		t := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
		_, first := t.In(a).Zone()
		_, second := t.In(b).Zone()
		if first != second {
			return false
		}
	}
	return true
}

// parseQuota parses the words of a text after the kind.
func parseQuota(words []string) (Limit, error) {
	if len(words) != 1 && (len(words) != 3 || words[1] != "zone") {
		return nil, errors.New("must have a quota, and may have zone and a name")
	}
	number, every, _ := strings.Cut(words[0], "/")
	limit, err := strconv.Atoi(number)
	if err != nil || longestPeriods[quota.Period(every)] == 0 {
		return nil, fmt.Errorf("%.40q must be like 100/day, 100/week or 100/month", words[0])
	}
	q := CalendarQuota{Limit: limit, Every: quota.Period(every)}
	if len(words) == 3 {
		if q.Zone, err = time.LoadLocation(words[2]); err != nil || q.Zone == time.Local {
			return nil, fmt.Errorf("zone is %.40q, must be a name of the tz database", words[2])
		}
	}
	return q, nil
}
