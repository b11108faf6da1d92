package limiter_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

func TestRateString(t *testing.T) {
	for want, r := range map[string]limiter.Rate{
		"200/s":     limiter.PerSecond(200),
		"0.5/s":     limiter.PerSecond(0.5),
		"7/1m":      limiter.PerMinute(7),
		"1000/1h":   limiter.Per(1000, time.Hour),
		"10/13s":    limiter.Per(10, 13*time.Second),
		"1/100ms":   limiter.Per(1, 100*time.Millisecond),
		"unset":     {},
		"unlimited": limiter.Unlimited(),
	} {
		require.Equal(t, want, r.String())
	}
}

func TestRateValidate(t *testing.T) {
	for _, c := range []struct {
		rate limiter.Rate
		want string
	}{
		{limiter.Rate{}, "limiter: Rate is unset, must be above 0"},
		{limiter.PerSecond(0), "limiter: Rate is 0/s, must be above 0"},
		{limiter.PerSecond(-1), "limiter: Rate is -1/s, must be above 0"},
		{limiter.PerSecond(math.NaN()), "limiter: Rate is NaN/s, must be above 0"},
		{limiter.PerSecond(math.Inf(-1)), "limiter: Rate is -Inf/s, must be above 0"},
		{limiter.PerSecond(math.Inf(1)), "limiter: Rate is +Inf/s, must be finite (or Unlimited)"},
		{limiter.Per(5, 0), "limiter: Rate is 5/0s, must be above 0"},
		{limiter.Per(0, 0), "limiter: Rate is 0/-1ns, must be above 0"},
		{limiter.Per(5, -time.Second), "limiter: Rate is 5/-1s, must be above 0"},
		{limiter.Per(-5, -time.Second), "limiter: Rate is -5/-1s, must be above 0"},
		{limiter.PerSecond(5e9), "limiter: Rate is 5000000000/s, must be at most 4/ns (or Unlimited)"},
	} {
		require.EqualError(t, c.rate.Validate(), c.want)
	}
	for _, r := range []limiter.Rate{
		limiter.PerSecond(4e9), limiter.PerSecond(math.SmallestNonzeroFloat64),
		limiter.Per(1, math.MaxInt64), limiter.Unlimited(),
	} {
		require.NoError(t, r.Validate(), r)
	}
}

func TestFractionsMeanTheSimplestRatio(t *testing.T) {
	for _, c := range []struct {
		rate   limiter.Rate
		events int           // number of tokens
		in     time.Duration // added in exactly this time
	}{
		{limiter.PerSecond(0.1), 1, 10 * time.Second},
		{limiter.PerSecond(0.7), 7, 10 * time.Second},
		{limiter.PerSecond(1.0 / 3), 1, 3 * time.Second},
		{limiter.PerSecond(0.7692307692307693), 10, 13 * time.Second},
		{limiter.PerSecond(1.9), 19, 10 * time.Second},
		{limiter.PerMinute(2.5), 5, 2 * time.Minute},
		{limiter.Per(1.5, 7), 3, 14},
	} {
		b := newBucket(c.rate, c.events)
		runSteps(t, b,
			step{0, c.events, "ok"},
			step{c.in - 1, c.events, "refused"},
			step{c.in, c.events, "ok"})
		for k := range time.Duration(10_000) {
			runSteps(t, b, step{(k + 2) * c.in, c.events, "ok"})
		}
	}
}

func TestRatioHasWholeNumbers(t *testing.T) {
	for rate, want := range map[limiter.Rate][2]int64{
		limiter.PerSecond(200):             {200, 1e9},
		limiter.PerSecond(0.1):             {1, 10e9},
		limiter.PerMinute(7.5):             {15, 120e9},
		limiter.Per(1, 3*time.Millisecond): {1, 3e6},
		limiter.PerSecond(1e-300):          {1, math.MaxInt64},
		limiter.Per(10, 13*time.Second):    {10, 13e9},
		limiter.PerSecond(1.0 / 3):         {1, 3e9},
	} {
		events, per := rate.Ratio()
		require.Equal(t, want, [2]int64{events, int64(per)}, "%v", rate)
	}
}
