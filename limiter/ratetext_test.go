package limiter_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestRateTextIsParsedBack(t *testing.T) {
	for text, want := range map[string]limiter.Rate{
		"100/s":     limiter.PerSecond(100),
		"0.5/s":     limiter.PerSecond(0.5),
		"10/1m":     limiter.PerMinute(10),
		"5000/24h":  limiter.Per(5000, 24*time.Hour),
		"10/13s":    limiter.Per(10, 13*time.Second),
		"7/1h30m":   limiter.Per(7, 90*time.Minute),
		"7/10m":     limiter.Per(7, 10*time.Minute),
		"1/100ms":   limiter.Per(1, 100*time.Millisecond),
		"4/1ns":     limiter.Per(4, 1),
		"1000000/s": limiter.PerSecond(1e6),
		"1e-09/s":   limiter.PerSecond(1e-9),
		"unlimited": limiter.Unlimited(),
	} {
		r, err := limiter.ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, r, text)
		require.Equal(t, text, r.String())
	}
}

func TestParseRateAcceptsOtherForms(t *testing.T) {
	for text, want := range map[string]limiter.Rate{
		"100/1s": limiter.PerSecond(100),
		"10/m":   limiter.PerMinute(10),
		"10/60s": limiter.PerMinute(10),
		"1e3/h":  limiter.Per(1000, time.Hour),
		"3/.5s":  limiter.Per(3, time.Second/2),
	} {
		r, err := limiter.ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, r, text)
	}
}

func TestParseRateNamesTheFault(t *testing.T) {
	const like = ", must be like 100/s, 10/1m, 5000/24h or unlimited"
	for text, want := range map[string]string{
		"":        `limiter: Rate is ""` + like,
		"100":     `limiter: Rate is "100"` + like,
		"100/":    `limiter: Rate is "100/"` + like,
		"/s":      `limiter: Rate is "/s"` + like,
		"100/x":   `limiter: Rate is "100/x"` + like,
		"ten/s":   `limiter: Rate is "ten/s"` + like,
		"10/s/s":  `limiter: Rate is "10/s/s"` + like,
		"10/-1s":  `limiter: Rate is "10/-1s"` + like,
		"10 /s":   `limiter: Rate is "10 /s"` + like,
		"unset":   `limiter: Rate is "unset"` + like,
		"0/s":     "limiter: Rate is 0/s, must be above 0",
		"-3/1m":   "limiter: Rate is -3/1m, must be above 0",
		"10/0s":   "limiter: Rate is 10/0s, must be above 0",
		"NaN/s":   "limiter: Rate is NaN/s, must be above 0",
		"Inf/s":   "limiter: Rate is +Inf/s, must be finite (or Unlimited)",
		"5/1ns":   "limiter: Rate is 5/1ns, must be at most 4/ns (or Unlimited)",
		"1e999/s": `limiter: Rate is "1e999/s"` + like,

		strings.Repeat("9", 5000): `limiter: Rate is "` + strings.Repeat("9", 60) + `"` + like,
	} {
		_, err := limiter.ParseRate(text)
		require.EqualError(t, err, want)
		if text != "" {
			r := limiter.PerSecond(1)
			require.EqualError(t, r.UnmarshalText([]byte(text)), want)
			require.Equal(t, limiter.PerSecond(1), r, "invalid text changes nothing")
		}
	}
}

func TestConfigIsReadFromJSON(t *testing.T) {
	type file struct {
		Rate  limiter.Rate
		Other limiter.Rate
	}
	text := `{"Rate":"10/1m","Other":""}`
	var got file
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, file{Rate: limiter.PerMinute(10)}, got)

	again, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, text, string(again))

	_, err = json.Marshal(limiter.PerSecond(-1))
	require.ErrorContains(t, err, "limiter: Rate is -1/s, must be above 0")
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"100/s", "10/1m", "5000/24h", "unlimited", "0.1/7h3m0.5s", "1e-300/s", "0x1p-2/µs", "-1/s", "1/", "NaN/1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := limiter.ParseRate(text)
		if err != nil {
			require.Zero(t, r)
			return
		}
		require.NoError(t, r.Validate())
		requireTextRoundTrip(t, r)
	})
}

// FuzzRateText checks that the text of every valid rate is read back as the same rate.
func FuzzRateText(f *testing.F) {
	f.Add(100.0, int64(time.Second))
	f.Add(1.0/3, int64(90*time.Minute))
	f.Add(math.SmallestNonzeroFloat64, int64(math.MaxInt64))
	f.Add(1e21, int64(math.MaxInt64))
	f.Add(5e-7, int64(1))
	f.Fuzz(func(t *testing.T, events float64, per int64) {
		if r := limiter.Per(events, time.Duration(per)); r.Validate() == nil {
			requireTextRoundTrip(t, r)
		}
	})
}

func requireTextRoundTrip(t *testing.T, r limiter.Rate) {
	t.Helper()
	text, err := r.MarshalText()
	require.NoError(t, err)
	var back limiter.Rate
	require.NoError(t, back.UnmarshalText(text))
	require.Equal(t, r, back, "%s", text)
	again, err := back.MarshalText()
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}
