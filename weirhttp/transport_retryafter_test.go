package weirhttp_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func TestRetryAfterExtendsTheCooldown(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		want   time.Duration
	}{
		{"no wish", nil, 5 * time.Second},
		{"seconds", []string{"Retry-After", "40"}, 40 * time.Second},
		{"date", []string{"Retry-After", "Sat, 01 Jan 2000 00:00:50 GMT"}, 50 * time.Second},
		{"quota", []string{"RateLimit", `"a";r=0;t=30`}, 30 * time.Second},
		{"less than the cooldown", []string{"Retry-After", "1"}, 5 * time.Second},
		{"bounded by the breaker", []string{"Retry-After", "1000000"}, time.Minute},
		{"absurd", []string{"Retry-After", "1e99"}, 5 * time.Second},
		{"negative", []string{"Retry-After", "-1"}, 5 * time.Second},
		{"past", []string{"Retry-After", "Sat, 01 Jan 1999 00:00:00 GMT"}, 5 * time.Second},
		{"a megabyte", []string{"Retry-After", strings.Repeat("9", 1<<20)}, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := weirhttp.NewTransport(gatePerHost(weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: 5 * time.Second, CooldownJitter: breaker.Off}}), weirhttp.TransportConfig{Base: alwaysRespond(503, c.header...)})
			sendAllowed(t, transport, "https://a.example/")
			_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
			require.ErrorIs(t, err, breaker.ErrOpen, c.name)
			require.Equal(t, c.want, weir.RetryAfter(err), c.name)
		})
	}
}

func TestRetryAfterHoldsTheGate(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		header  []string
		longest time.Duration
		want    time.Duration
	}{
		{"no wish", 429, nil, 0, 0},
		{"too many requests", 429, []string{"Retry-After", "40"}, 0, 40 * time.Second},
		{"unavailable", 503, []string{"Retry-After", "40"}, 0, 40 * time.Second},
		{"quota", 429, []string{"RateLimit", `"a";r=0;t=30`}, 0, 30 * time.Second},
		{"bounded", 429, []string{"Retry-After", "9999999"}, 0, time.Minute},
		{"bounded by us", 429, []string{"Retry-After", "9999999"}, time.Hour, time.Hour},
		{"not listened to", 429, []string{"Retry-After", "40"}, breaker.Off, 0},
		{"not a refusal", 200, []string{"Retry-After", "40"}, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := weirhttp.NewTransport(gatePerHost(weir.Config{Rate: limiter.PerSecond(1000)}), weirhttp.TransportConfig{
				Base:          alwaysRespond(c.status, c.header...),
				MaxRetryAfter: c.longest,
			})

			sendAllowed(t, transport, "https://a.example/")
			sendAllowed(t, transport, "https://b.example/")
			_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
			require.GreaterOrEqual(t, weir.RetryAfter(err), c.want.Truncate(time.Second), c.name)
			require.LessOrEqual(t, weir.RetryAfter(err), c.want+c.want/10, c.name)
			if c.want > 0 {
				require.ErrorIs(t, err, limiter.ErrLimited, c.name)
				time.Sleep(weir.RetryAfter(err))
				sendAllowed(t, transport, "https://a.example/")
			}
		})
	}
}
