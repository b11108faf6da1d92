package fleet_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
)

var limitTexts = map[string]fleet.Limits{
	"token-bucket 100/s burst 20":     {fleet.TokenBucket{Rate: limiter.PerSecond(100), Burst: 20}},
	"token-bucket 0.5/1h":             {fleet.TokenBucket{Rate: limiter.Per(0.5, time.Hour)}},
	"fixed-window 1000/24h":           {fleet.FixedWindow{Limit: 1000, Window: 24 * time.Hour}},
	"fixed-window 2147483647/1ms":     {fleet.FixedWindow{Limit: math.MaxInt32, Window: time.Millisecond}},
	"sliding-window 100/1m buckets 6": {fleet.SlidingWindow{Limit: 100, Window: time.Minute, Buckets: 6}},
	"calendar-quota 5/month":          {fleet.CalendarQuota{Limit: 5, Every: quota.Month}},
	"sliding-log 1/s":                 {fleet.SlidingLog{Limit: 1, Window: time.Second}},
	"cl.throttle 15 30 60":            {rediscell.Limit(15, 30, time.Minute)},
	"token-bucket 10/s, sliding-log 5/1h30m, shared token-bucket 1000/s burst 50": {
		fleet.TokenBucket{Rate: limiter.PerSecond(10)},
		fleet.SlidingLog{Limit: 5, Window: 90 * time.Minute},
		fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.PerSecond(1000), Burst: 50}},
	},
	"": nil,
}

func TestLimitsAreReadAndWrittenAsText(t *testing.T) {
	for text, limits := range limitTexts {
		written, err := limits.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(written))
		var read struct{ Limits fleet.Limits }
		require.NoError(t, json.Unmarshal([]byte(`{"Limits":"`+text+`"}`), &read))
		require.Equal(t, limits, read.Limits)
	}
	var limits fleet.Limits
	require.NoError(t, limits.UnmarshalText([]byte("  fixed-window   60/m ,sliding-log 5/0.5s ")))
	require.Equal(t, fleet.Limits{fleet.FixedWindow{Limit: 60, Window: time.Minute}, fleet.SlidingLog{Limit: 5, Window: 500 * ms}}, limits)
}

func TestInvalidTextsOfLimits(t *testing.T) {
	for text, want := range map[string]string{
		"bucket 1/s":                        `fleet: the limit "bucket 1/s": must begin with token-bucket, fixed-window, sliding-window, sliding-log, calendar-quota, cl.throttle or shared`,
		"token-bucket":                      `fleet: the limit "token-bucket": must have a rate, and may have burst and a number`,
		"token-bucket 1/s burst":            `fleet: the limit "token-bucket 1/s burst": must have a rate, and may have burst and a number`,
		"token-bucket 1/s burst 0":          `fleet: the limit "token-bucket 1/s burst 0": burst is "0", must be a number of at least 1`,
		"token-bucket 1/s buckets 2":        `fleet: the limit "token-bucket 1/s buckets 2": must have a rate, and may have burst and a number`,
		"token-bucket unlimited":            `fleet: the limit "token-bucket unlimited": fleet: Rate is unlimited, must be finite`,
		"fixed-window 1/s burst 2":          `fleet: the limit "fixed-window 1/s burst 2": must have a rate and nothing else`,
		"fixed-window 1.5/s":                `fleet: the limit "fixed-window 1.5/s": "1.5/s" must be like 100/s, 10/1m or 5000/24h`,
		"fixed-window 5":                    `fleet: the limit "fixed-window 5": "5" must be like 100/s, 10/1m or 5000/24h`,
		"calendar-quota 1/year":             `fleet: the limit "calendar-quota 1/year": "1/year" must be like 100/day, 100/week or 100/month`,
		"calendar-quota x/day":              `fleet: the limit "calendar-quota x/day": "x/day" must be like 100/day, 100/week or 100/month`,
		"calendar-quota 0/day":              `fleet: the limit "calendar-quota 0/day": fleet: Limit is 0, must lie between 1 and 2147483647`,
		"calendar-quota 1/day Europe/Paris": `fleet: the limit "calendar-quota 1/day Europe/Paris": must have a quota, and may have zone and a name`,
		"calendar-quota 1/day zone Mars":    `fleet: the limit "calendar-quota 1/day zone Mars": zone is "Mars", must be a name of the tz database`,
		"sliding-log 0/s":                   `fleet: the limit "sliding-log 0/s": fleet: Limit is 0, must lie between 1 and 2147483647`,
		"sliding-log 1/s,":                  `fleet: the limit "": is empty`,
		"shared":                            `fleet: the limit "shared": is empty`,
		"shared shared sliding-log 1/s":     `fleet: the limit "shared shared sliding-log 1/s": fleet: Limit of a Shared is a Shared, must be a limit of another kind`,
		"cl.throttle 1 2":                   `fleet: the limit "cl.throttle 1 2": must have max_burst, count and period`,
		"cl.throttle 1 2 x":                 `fleet: the limit "cl.throttle 1 2 x": "x" must be a number`,
		"cl.throttle 1 2 99999999999999999": `fleet: the limit "cl.throttle 1 2 99999999999999999": period is 99999999999999999, must be at most 315360000`,
	} {
		limits := fleet.Limits{hourlyBucket}
		require.EqualError(t, limits.UnmarshalText([]byte(text)), want)
		require.Equal(t, fleet.Limits{hourlyBucket}, limits)
	}
	log := fleet.SlidingLog{Limit: 1, Window: time.Second}
	for want, limit := range map[string]fleet.Limit{
		"fleet: a Shared limit with a By has no text":          fleet.Shared{By: tenantOf, Limit: log},
		"fleet: a limit of package redisson has no text":       redisson.PerClient(log, "c"),
		"fleet: Limit is 0, must lie between 1 and 2147483647": fleet.FixedWindow{Window: time.Second},
		"fleet: Limits[0] is nil, must be given":               nil,
	} {
		_, err := fleet.Limits{limit}.MarshalText()
		require.EqualError(t, err, want)
	}
}

// Any text that can be parsed is written and parsed again as the same limits.
func FuzzLimits(f *testing.F) {
	for text := range limitTexts {
		f.Add(text)
	}
	f.Add("sliding-window 7/0.5s buckets 3 , cl.throttle 0 1 1")
	f.Add("token-bucket 1e-3/ns burst +7")
	f.Add("shared fixed-window 08/1h0m1s")
	f.Fuzz(func(t *testing.T, text string) {
		var read fleet.Limits
		if read.UnmarshalText([]byte(text)) != nil {
			return
		}
		first, err := read.MarshalText()
		require.NoError(t, err, "%q", text)
		var again fleet.Limits
		require.NoError(t, again.UnmarshalText(first), "%q", text)
		require.Equal(t, read, again, "%q", text)
		second, err := again.MarshalText()
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}
