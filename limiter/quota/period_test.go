package quota_test

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter/quota"
)

// zones returns all zones of the tz database that comes with Go, each content once, and the zone of
// testdata that counts leap seconds.
func zones(t testing.TB) map[string]*time.Location {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer r.Close()
	all, known := map[string]*time.Location{}, map[string]bool{}
	for _, f := range r.File {
		rc, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(rc)
		require.NoError(t, err)
		if !bytes.HasPrefix(content, []byte("TZif")) || known[string(content)] {
			continue
		}
		known[string(content)] = true
		all[f.Name], err = time.LoadLocationFromTZData(f.Name, content)
		require.NoError(t, err)
	}
	require.Greater(t, len(all), 300)
	all["right/Europe/Berlin"] = rightBerlin(t)
	return all
}

// rightBerlin is a zone whose file has leap seconds.
func rightBerlin(t testing.TB) *time.Location {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "right-europe-berlin.tzif"))
	require.NoError(t, err)
	zone, err := time.LoadLocationFromTZData("right/Europe/Berlin", content)
	require.NoError(t, err)
	return zone
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	if name == "right/Europe/Berlin" {
		return rightBerlin(t)
	}
	l, err := time.LoadLocation(name)
	require.NoError(t, err)
	return l
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

func TestPeriodsOfTheCalendar(t *testing.T) {
	for _, c := range []struct {
		what               string
		every              quota.Period
		zone, at           string
		start, end, length string
	}{
		{"a day", quota.Day, "UTC", "2026-07-15T12:00:00Z", "2026-07-15T00:00:00Z", "2026-07-16T00:00:00Z", "24h0m0s"},
		{"its first moment", quota.Day, "UTC", "2026-07-15T00:00:00Z", "2026-07-15T00:00:00Z", "2026-07-16T00:00:00Z", "24h0m0s"},
		{"the last second of the one before", quota.Day, "UTC", "2026-07-14T23:59:59Z", "2026-07-14T00:00:00Z", "2026-07-15T00:00:00Z", "24h0m0s"},
		{"clocks go forward", quota.Day, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "23h0m0s"},
		{"clocks go back", quota.Day, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "25h0m0s"},
		{"no midnight in Brazil", quota.Day, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", "23h0m0s"},
		{"the day before it", quota.Day, "America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "24h0m0s"},
		{"23:00 twice in Brazil", quota.Day, "America/Sao_Paulo", "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z", "25h0m0s"},
		{"no midnight in Lebanon", quota.Day, "Asia/Beirut", "2022-03-27T10:00:00Z", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z", "23h0m0s"},
		{"no midnight in Egypt", quota.Day, "Africa/Cairo", "2023-04-28T10:00:00Z", "2023-04-27T22:00:00Z", "2023-04-28T21:00:00Z", "23h0m0s"},
		{"midnight twice in Cuba", quota.Day, "America/Havana", "2024-11-03T12:00:00Z", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z", "25h0m0s"},
		{"the second midnight", quota.Day, "America/Havana", "2024-11-03T05:00:00Z", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z", "25h0m0s"},
		{"the 30th is skipped in Samoa", quota.Day, "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "24h0m0s"},
		{"and the 31st follows", quota.Day, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", "24h0m0s"},
		{"a week of six days", quota.Week, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z", "144h0m0s"},
		{"the month of 30 days", quota.Month, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z", "720h0m0s"},
		{"the new day begins at 0:00 and does not end at 0:01", quota.Day, "America/St_Johns", "2010-11-07T02:40:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z", "25h0m0s"},
		{"a Sunday", quota.Week, "UTC", "2026-07-19T23:59:59Z", "2026-07-13T00:00:00Z", "2026-07-20T00:00:00Z", "168h0m0s"},
		{"a Monday", quota.Week, "UTC", "2026-07-20T00:00:00Z", "2026-07-20T00:00:00Z", "2026-07-27T00:00:00Z", "168h0m0s"},
		{"a week over New Year", quota.Week, "UTC", "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z", "168h0m0s"},
		{"31 days", quota.Month, "UTC", "2026-07-31T23:59:59Z", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z", "744h0m0s"},
		{"30 days", quota.Month, "UTC", "2026-06-30T00:00:00Z", "2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z", "720h0m0s"},
		{"29 days", quota.Month, "UTC", "2028-02-29T00:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", "696h0m0s"},
		{"28 days", quota.Month, "UTC", "2100-02-28T00:00:00Z", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z", "672h0m0s"},
		{"December", quota.Month, "UTC", "2026-12-31T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "744h0m0s"},
		{"the last day of a leap year", quota.Day, "Europe/Berlin", "2040-12-31T12:00:00Z", "2040-12-30T23:00:00Z", "2040-12-31T23:00:00Z", "24h0m0s"},
		{"a leap second, which a POSIX clock does not show", quota.Day, "UTC", "2016-12-31T23:59:59Z", "2016-12-31T00:00:00Z", "2017-01-01T00:00:00Z", "24h0m0s"},
		{"in a zone that counts them", quota.Day, "right/Europe/Berlin", "2016-12-31T12:00:00Z", "2016-12-30T23:00:00Z", "2016-12-31T23:00:00Z", "24h0m0s"},
		{"clocks go forward in it", quota.Day, "right/Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "23h0m0s"},
	} {
		t.Run(c.what, func(t *testing.T) {
			start, end := quota.PeriodAt(c.every, zone(t, c.zone), moment(t, c.at))
			require.Equal(t, []string{c.start, c.end, c.length}, []string{start.Format(time.RFC3339), end.Format(time.RFC3339), end.Sub(start).String()})
		})
	}
}

// localDay is a date and the first moment at which a clock showed it.
type localDay struct {
	date  time.Time // at 0:00 UTC
	first time.Time
}

// slowDays returns the days of a zone, found in a slow and simple way: it steps through the time,
// by minutes where the offset changes, and notes when a later date appears for the first time.
func slowDays(zone *time.Location, from, until time.Time) (days []localDay) {
	date := func(t time.Time) time.Time {
		y, m, d := t.In(zone).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
	offset := func(t time.Time) int {
		_, o := t.In(zone).Zone()
		return o
	}
	latest := date(from)
	note := func(before, after time.Time) { // the date changes at most once between them
		if !date(after).After(latest) {
			return
		}
		for after.Sub(before) > time.Second {
			if middle := before.Add(after.Sub(before) / 2).Truncate(time.Second); date(middle).After(latest) {
				after = middle
			} else {
				before = middle
			}
		}
		latest = date(after)
		days = append(days, localDay{latest, after})
	}
	const step = 6 * time.Hour
	for t := from; t.Before(until); t = t.Add(step) {
		if offset(t) == offset(t.Add(step)) {
			note(t, t.Add(step))
			continue
		}
		for u := t; u.Before(t.Add(step)); u = u.Add(time.Minute) {
			note(u, u.Add(time.Minute))
		}
	}
	return days
}

// firstDays returns the days on which a period begins.
func firstDays(every quota.Period, days []localDay) (first []localDay) {
	number := func(d localDay) int {
		switch every {
		case quota.Month:
			return d.date.Year()*12 + int(d.date.Month())
		case quota.Week:
			return int(d.date.Unix()/86400+3) / 7 // 1970 began on a Thursday
		default:
			return int(d.date.Unix() / 86400)
		}
	}
	for i, d := range days {
		if i > 0 && number(d) != number(days[i-1]) {
			first = append(first, d)
		}
	}
	return first
}

func TestPeriodsOfAllZonesAgreeWithASlowOracle(t *testing.T) {
	checks, years := 0, testenv.Repeat(70, 4) // of each zone
	for name, zone := range zones(t) {
		random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
		from := time.Date(1970+random.IntN(71-years), time.February, 1, 0, 0, 0, 0, time.UTC)
		days := slowDays(zone, from, from.AddDate(years, 0, 0))
		for _, every := range []quota.Period{quota.Day, quota.Week, quota.Month} {
			first := firstDays(every, days)
			for i, d := range first[:len(first)-1] {
				next := first[i+1].first
				length := next.Sub(d.first)
				if every == quota.Day && length == 24*time.Hour && random.IntN(20) > 0 {
					continue
				}
				for _, at := range []time.Time{d.first, d.first.Add(time.Duration(random.Int64N(int64(length)))), next.Add(-1)} {
					checks++
					start, end := quota.PeriodAt(every, zone, at)
					if !start.Equal(d.first) || !end.Equal(next) {
						require.Equalf(t, []time.Time{d.first.UTC(), next.UTC()}, []time.Time{start, end}, "%s, %s at %s", name, every, at)
					}
				}
			}
		}
	}
	require.Greater(t, checks, 100_000)
}

// A period contains its times, and follows the one before without a gap, also in years in which no
// zone is known.
func FuzzPeriodsHaveNoGaps(f *testing.F) {
	all := zones(f)
	names := slices.Sorted(maps.Keys(all))
	f.Add(int64(0), 0, uint8(0), 0)
	f.Add(int64(-62135596800), 1, uint8(1), 0)
	f.Add(int64(1<<40), 2, uint8(2), 90_000)
	f.Fuzz(func(t *testing.T, seconds int64, number int, kind uint8, offset int) {
		zone := all[names[uint(number)%uint(len(names))]]
		if offset != 0 {
			zone = time.FixedZone("fixed", offset%1_000_000)
		}
		every := []quota.Period{quota.Day, quota.Week, quota.Month}[kind%3]
		at := time.Unix(seconds%(1<<45), 0) // a million years
		start, end := quota.PeriodAt(every, zone, at)
		require.False(t, at.Before(start) || !at.Before(end), "%s is not in [%s, %s)", at, start, end)
		next, _ := quota.PeriodAt(every, zone, end)
		require.Equal(t, end, next)
		same, last := quota.PeriodAt(every, zone, end.Add(-1))
		require.Equal(t, []time.Time{start, end}, []time.Time{same, last})
		require.Less(t, end.Sub(start), 33*24*time.Hour)
	})
}
