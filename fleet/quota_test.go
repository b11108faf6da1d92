package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
	"github.com/weir-go/weir/weirhttp"
)

// dailyQuota returns a quota per day, in a zone in which it is noon now. So no test runs at the end
// of a day.
func dailyQuota(limit int) fleet.CalendarQuota {
	noon := time.FixedZone("noon", (12-time.Now().UTC().Hour())*3600)
	return fleet.CalendarQuota{Limit: limit, Every: quota.Day, Zone: noon}
}

// zoneOf returns a zone of the tz database.
func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	return zone
}

// Tokens that were taken count until the next period begins, and not longer.
func TestACalendarQuotaLastsUntilThePeriodEnds(t *testing.T) {
	l := connect(t)
	const hour, day = time.Hour, 24 * time.Hour
	for _, c := range []struct {
		every      quota.Period
		zone, from string
		lasts      time.Duration
	}{
		{quota.Day, "UTC", "2026-03-29T00:00:00Z", day},
		{quota.Day, "Europe/Berlin", "2026-03-28T23:00:00Z", 23 * hour},
		{quota.Day, "Europe/Berlin", "2026-10-24T22:00:00Z", 25 * hour},
		{quota.Day, "Asia/Kathmandu", "2026-01-01T18:15:00Z", day},
		{quota.Day, "Africa/Cairo", "2026-04-23T22:00:00Z", 23 * hour}, // begins at 1:00
		{quota.Day, "Pacific/Apia", "2011-12-29T10:00:00Z", day},       // the next date is skipped
		{quota.Week, "UTC", "2026-12-28T00:00:00Z", 7 * day},
		{quota.Week, "America/New_York", "2026-03-02T05:00:00Z", 7*day - hour},
		{quota.Month, "UTC", "2026-02-01T00:00:00Z", 28 * day},
		{quota.Month, "UTC", "2028-02-01T00:00:00Z", 29 * day},
		{quota.Month, "Europe/Berlin", "2026-10-01T00:00:00+02:00", 31*day + hour},
	} {
		t.Run(fmt.Sprint(c.every, c.zone, c.from), func(t *testing.T) {
			b := newLimiter(l, "calendar", fleet.CalendarQuota{Limit: 10, Every: c.every, Zone: zoneOf(t, c.zone)}, errorOnOutage)
			from, err := time.Parse(time.RFC3339, c.from)
			require.NoError(t, err)
			key, end := newKey(), from.Add(c.lasts)
			for _, step := range []struct {
				at   time.Time
				n    int
				want limiter.Result
			}{
				{from.Add(-us), 10, allowedResult(10, 0, us)}, // of the period before
				{from, 7, allowedResult(10, 3, c.lasts)},
				{from.Add(time.Minute), 4, refusedResult(10, 3, c.lasts-time.Minute, c.lasts-time.Minute)},
				{end.Add(-us), 11, refusedResult(10, 3, limiter.Never, us)},
				{end.Add(-us), 0, allowedResult(10, 3, us)},
				{end.Add(-us), 3, allowedResult(10, 0, us)},
				{end, 0, allowedResult(10, 10, 0)},
			} {
				r, err := b.TakeAt(t.Context(), step.at, key, step.n)
				require.NoError(t, err)
				require.Equal(t, step.want, r.Result, "Take(%d) at %s", step.n, step.at)
			}
		})
	}
}

// A CalendarQuota decides as the quotas of one process do.
func TestACalendarQuotaDecidesAsPackageQuota(t *testing.T) {
	t.Parallel()
	l := connect(t)
	periods := map[quota.Period]time.Duration{quota.Day: 24 * time.Hour, quota.Week: 7 * 24 * time.Hour, quota.Month: 30 * 24 * time.Hour}
	for every, length := range periods {
		for _, zone := range []string{"UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Cairo"} {
			t.Run(fmt.Sprint(every, " ", zone), func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 2))
				zone := zoneOf(t, zone)
				b := newLimiter(l, "model", fleet.CalendarQuota{Limit: 9, Every: every, Zone: zone}, errorOnOutage)
				model := quota.New(quota.Config{Limit: 9, Every: every, Zone: zone}).Get("")
				key, at := newKey(), time.Date(2011, 12, 1, 0, 0, 0, 0, time.UTC)
				for range 300 {
					at = at.Add(time.Duration(random.Int64N(int64(length / 4)))).Truncate(us)
					n := random.IntN(5)
					r, err := b.TakeAt(t.Context(), at, key, n)
					require.NoError(t, err)
					require.Equal(t, model.TakeAt(at, n), r.Result, "Take(%d) at %s", n, at)
					if age := time.Duration(random.Int64N(int64(length / 2))).Truncate(us); random.IntN(2) == 0 {
						require.NoError(t, b.GiveBackAged(t.Context(), at, age, key, 2))
						model.Refund(at.Add(-age), 2)
					}
				}
			})
		}
	}
}

// The server's clock decides, and was set back since a value was written.
func TestAClockOfTheServerThatIsSetBackGivesNoQuotaTwice(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	b := newLimiter(l, "back", dailyQuota(10), errorOnOutage)
	now := time.Now().Truncate(time.Hour)
	today := now.Add(-12 * time.Hour)
	for name, c := range map[string]struct {
		days    int    // how many days ahead the clock was
		expires string // of the key, in days from today
	}{
		"not": {0, "1"}, "into the day before": {1, "2"}, "by more": {2, "1"}, "by years": {1000, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey()
			start := today.AddDate(0, 0, c.days)
			value := fmt.Sprintf("q%d %d 8", start.UnixMicro(), start.AddDate(0, 0, 1).UnixMicro())
			held := b.StateKeys(key)[0]
			require.NoError(t, direct.Set(t.Context(), held, value, 24*time.Hour).Err())
			r, err := b.Take(t.Context(), key, 3)
			require.NoError(t, err)
			require.Equal(t, [2]any{false, 2}, [2]any{r.OK, r.Remaining})
			requireTake(t, taken, b.Take, key, 2)
			end := today.Add(24 * time.Hour)
			if c.expires == "2" {
				end = end.Add(24 * time.Hour)
			}
			require.InDelta(t, time.Until(end), direct.PTTL(t.Context(), held).Val(), float64(time.Minute))
			require.NoError(t, b.Refund(t.Context(), time.Now().Add(-13*time.Hour), key, 1))
			requireTake(t, refused, b.Take, key, 1)
		})
	}
}

// The clock of a process does not matter, although it computes the periods. If it differs from that
// of the server by more than a period, the first request needs a second script.
func TestACalendarQuotaWithAWrongClockOfTheProcess(t *testing.T) {
	s := redistest.Start(t)
	l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
	limit := dailyQuota(6)
	b := newLimiters(l, "wrong", fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off}, fleet.FixedWindow{Limit: 100, Window: time.Hour}, limit)
	right := newLimiters(l, "wrong", errorOnOutage, fleet.FixedWindow{Limit: 100, Window: time.Hour}, limit)
	calls := func() int { c := s.Calls(); return c["evalsha"] + c["eval"] }
	requireTake(t, taken, b.Take, "user", 1)
	for i, c := range []struct {
		ahead   time.Duration
		scripts int
	}{{0, 1}, {24 * time.Hour, 1}, {-24 * time.Hour, 1}, {48 * time.Hour, 2}, {-1e6 * time.Hour, 2}} {
		b.ClockAhead(c.ahead)
		before := calls()
		r, err := b.Reserve(t.Context(), "user", 1)
		require.NoError(t, err)
		require.True(t, r.OK)
		require.Equal(t, 4-i, r.Remaining)
		require.Equal(t, c.scripts, calls()-before, "the clock is ahead by %s", c.ahead)
		b.ClockAhead(c.ahead)
		require.NoError(t, r.Settle(t.Context(), 1+i/4))
	}
	requireTake(t, refused, right.Take, "user", 1)
}

// Processes of different configurations use the same keys.
func TestACalendarQuotaWhosePeriodsChange(t *testing.T) {
	l := connect(t)
	east := time.FixedZone("east", 6*3600)
	day, eastern := fleet.CalendarQuota{Limit: 10, Every: quota.Day}, fleet.CalendarQuota{Limit: 10, Every: quota.Day, Zone: east}
	month := fleet.CalendarQuota{Limit: 10, Every: quota.Month}
	const hour = time.Hour
	type step struct {
		limit fleet.CalendarQuota
		at    time.Duration // since the beginning of a day and a month
		left  int           // after one token was taken
		reset time.Duration
	}
	for name, steps := range map[string][]step{
		"zone":        {{day, 12 * hour, 9, 12 * hour}, {eastern, 19 * hour, 8, 5 * hour}, {day, 20 * hour, 7, 4 * hour}, {eastern, 24 * hour, 9, 18 * hour}},
		"zone, back":  {{eastern, 12 * hour, 9, 6 * hour}, {day, 13 * hour, 8, 5 * hour}, {day, 18 * hour, 9, 6 * hour}, {eastern, 18 * hour, 8, 6 * hour}},
		"longer":      {{day, 50 * hour, 9, 22 * hour}, {month, 51 * hour, 8, 693 * hour}, {day, 52 * hour, 7, 20 * hour}, {month, 80 * hour, 6, 664 * hour}},
		"shorter":     {{month, 50 * hour, 9, 694 * hour}, {day, 51 * hour, 9, 21 * hour}, {day, 52 * hour, 8, 20 * hour}},
		"given times": {{day, 80 * hour, 9, 16 * hour}, {day, 10 * hour, 8, 86 * hour}},
		"first of it": {{month, hour, 9, 743 * hour}, {day, 2 * hour, 8, 22 * hour}, {month, 3 * hour, 7, 741 * hour}},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey()
			for i, s := range steps {
				r, err := newLimiter(l, "change", s.limit, errorOnOutage).TakeAt(t.Context(), testStart.Add(s.at), key, 1)
				require.NoError(t, err)
				require.Equal(t, allowedResult(10, s.left, s.reset), r.Result, "step %d", i)
			}
		})
	}
}

// Processes share a quota, and it survives them, but not the data of the server.
func TestACalendarQuotaSurvivesProcesses(t *testing.T) {
	s := redistest.Start(t)
	direct := newClient(t, s)
	process := func() *fleet.Limiter {
		l := connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout})
		return newLimiter(l, "processes", dailyQuota(10), fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
	}
	one, two := process(), process()
	requireTake(t, taken, one.Take, "user", 4)
	requireTake(t, taken, two.Take, "user", 4)
	require.NoError(t, one.Close(t.Context()))
	again := process()
	requireTake(t, refused, again.Take, "user", 3)
	requireTake(t, taken, again.Take, "user", 2)
	require.NoError(t, direct.FlushAll(t.Context()).Err())
	requireTake(t, taken, two.Take, "user", 10)
	requireTake(t, refused, again.Take, "user", 1)
}

// A debt counts in the period in which it was charged, and ends with it.
func TestADebtOfACalendarQuotaEndsWithThePeriod(t *testing.T) {
	b := newLimiter(connect(t), "debt", fleet.CalendarQuota{Limit: 10, Every: quota.Day}, errorOnOutage)
	take := func(at time.Duration, n int) limiter.Result {
		r, err := b.TakeAt(t.Context(), testStart.Add(at), "user", n)
		require.NoError(t, err)
		return r.Result
	}
	const day = 24 * time.Hour
	require.True(t, take(day-us, 3).OK)
	require.NoError(t, b.SettleAt(t.Context(), testStart.Add(day-us), 0, "user", "one", 100))
	require.Equal(t, refusedResult(10, 0, us, us), take(day-us, 0))
	require.Equal(t, allowedResult(10, 4, day), take(day, 6))
	require.NoError(t, b.SettleAt(t.Context(), testStart.Add(day), us, "user", "two", -3), "of the day before")
	require.Equal(t, 4, take(day, 0).Remaining)
	require.NoError(t, b.SettleAt(t.Context(), testStart.Add(day), us, "user", "three", 3), "charged now")
	require.Equal(t, 1, take(day, 0).Remaining)
}

// The headers of a refusal say how long it takes until the period ends, and X-RateLimit-Reset says
// that of each response.
func TestHeadersOfACalendarQuota(t *testing.T) {
	l, limit := connect(t), dailyQuota(2)
	b := newLimiter(l, "headers", limit, errorOnOutage)
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{{Name: "day", By: func(*http.Request) string { return "user" }, Remote: b.Get}},
		Legacy:   true,
	}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	now := time.Now().In(limit.Zone)
	left := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, limit.Zone).Sub(now).Seconds()
	for i, status := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		require.Equal(t, status, w.Code)
		want := fmt.Sprintf(`"day";r=%d`, max(1-i, 0))
		if status != http.StatusOK {
			retry := w.Header().Get("Retry-After")
			requireSeconds(t, left, retry)
			want += ";t=" + retry
		}
		require.Equal(t, want, w.Header().Get("RateLimit"))
		requireSeconds(t, left, w.Header().Get("X-RateLimit-Reset"))
	}
}

// requireSeconds requires that a text is about a number of seconds.
func requireSeconds(t *testing.T, want float64, text string) {
	t.Helper()
	seconds, err := strconv.Atoi(text)
	require.NoError(t, err)
	require.InDelta(t, want, seconds, 60)
}

func TestInvalidCalendarQuotas(t *testing.T) {
	require.NoError(t, fleet.Check(fleet.CalendarQuota{Limit: 1, Every: quota.Week}))
	require.EqualError(t, fleet.Check(fleet.CalendarQuota{Every: "year"}), "fleet: Limit is 0, must lie between 1 and 2147483647\n"+
		`fleet: Every is "year", must be "day", "week" or "month"`)
}

func TestZonesOfCalendarQuotasAsText(t *testing.T) {
	const text = "calendar-quota 100/day zone Europe/Berlin"
	var limits fleet.Limits
	require.NoError(t, limits.UnmarshalText([]byte(text)))
	berlin := limits[0].(fleet.CalendarQuota)
	require.Equal(t, [3]any{100, quota.Day, "Europe/Berlin"}, [3]any{berlin.Limit, berlin.Every, berlin.Zone.String()})
	written, err := limits.MarshalText()
	require.NoError(t, err)
	require.Equal(t, text, string(written))
	for _, zone := range []*time.Location{time.Local, time.FixedZone("east", 3600), time.FixedZone("Europe/Berlin", 3600)} {
		_, err := fleet.Limits{fleet.CalendarQuota{Limit: 1, Every: quota.Day, Zone: zone}}.MarshalText()
		require.EqualError(t, err, "fleet: the zone "+zone.String()+" of a CalendarQuota has no text")
	}
}
