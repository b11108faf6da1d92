package weirhttp_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
	"github.com/weir-go/weir/stat/view"
	"github.com/weir-go/weir/weirhttp"
)

func quotaPolicy(name string, q *quota.Group) weirhttp.Policy {
	return weirhttp.Policy{Name: name, Quota: q, By: byAPIKey}
}

// The clock of a bubble begins on a Saturday, the 1st of January 2000, at 0:00 UTC.
func TestHeadersOfAQuota(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct {
		what          string
		config        quota.Config
		after         time.Duration
		n             int
		policy, limit string
		retry, legacy string
	}{
		{"a day", quota.Config{Limit: 3, Every: quota.Day}, time.Hour, 1, `"q";q=3;w=86400`, `"q";r=2;t=82800`, "", "82800"},
		{"the last one", quota.Config{Limit: 3, Every: quota.Day}, time.Hour, 3, `"q";q=3;w=86400`, `"q";r=0;t=82800`, "", "82800"},
		{"one too many", quota.Config{Limit: 3, Every: quota.Day}, time.Hour + time.Nanosecond, 4, `"q";q=3;w=86400`, `"q";r=0;t=82800`, "82800", "82800"},
		{"a week", quota.Config{Limit: 3, Every: quota.Week}, 0, 1, `"q";q=3;w=604800`, `"q";r=2;t=172800`, "", "172800"},
		{"a month of 29 days", quota.Config{Limit: 3, Every: quota.Month}, 31 * 24 * time.Hour, 1, `"q";q=3;w=2505600`, `"q";r=2;t=2505600`, "", "2505600"},
		{"a day of 23 hours", quota.Config{Limit: 3, Every: quota.Day, Zone: berlin}, 85*24*time.Hour + 12*time.Hour, 1, `"q";q=3;w=82800`, `"q";r=2;t=36000`, "", "36000"},
		{"a shadow tells nothing", quota.Config{Name: "s", Limit: 3, Every: quota.Day, Shadow: true}, 0, 4, "", "", "", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(c.after)
				h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{quotaPolicy("q", quota.New(c.config))}, Legacy: true}).Handler(okHandler)
				for range c.n - 1 {
					request{key: "a"}.send(h)
				}
				w := request{key: "a"}.send(h)
				require.Equal(t, c.policy, w.Header().Get("RateLimit-Policy"))
				require.Equal(t, c.limit, w.Header().Get("RateLimit"))
				require.Equal(t, c.retry, w.Header().Get("Retry-After"))
				require.Equal(t, c.legacy, w.Header().Get("X-RateLimit-Reset"))
				require.Equal(t, c.retry != "", w.Code == http.StatusTooManyRequests)
			})
		})
	}
}

func TestAPolicyWithAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(quota.Config{Name: "daily", Limit: 5, Every: quota.Day, MaxKeys: 2, ShowKeys: true})
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
			quotaPolicy("day", q), {Name: "burst", Limit: 3, Window: time.Second, By: byAPIKey},
		}})
		var charged *http.Request
		h := l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { charged = r }))
		for _, want := range []int{200, 200, 200, 429} {
			require.Equal(t, want, request{key: "a"}.send(h).Code)
		}
		require.Equal(t, 2, q.Get("a").Take(0).Remaining, "the request that the other policy refused costs nothing")
		require.Equal(t, limiter.Stats{Allowed: 3}, q.Stats())
		l.Charge(charged, 4)
		time.Sleep(time.Second)
		w := request{key: "a"}.send(h)
		require.Equal(t, "86399", w.Header().Get("Retry-After"), "two are owed, and forgotten tomorrow")
		require.Contains(t, w.Body.String(), `"day"`)
		require.Equal(t, limiter.Stats{Allowed: 3, Refused: 1}, q.Stats())
		require.Equal(t, []limiter.BusyKey{{Limiter: "daily", Key: "a", AtLeast: 1, AtMost: 1}}, q.Busiest(1))
		require.Equal(t, "daily", l.Busiest(1)[0].Limiter)

		require.Equal(t, 200, request{from: one}.send(h).Code, "the address is the key of a client without one")
		require.Equal(t, 5, q.Get("192.0.2.1").Take(0).Remaining, "no client can use the quota of an address")
		w = request{key: "c"}.send(h)
		require.Equal(t, 429, w.Code)
		require.Contains(t, w.Body.String(), `"day"`)
		l.Charge(charged, 1)
		require.NoError(t, l.Reconfigure(weirhttp.LimitConfig{Policies: []weirhttp.Policy{quotaPolicy("other", q)}}))
		require.Equal(t, 429, request{key: "a"}.send(h).Code, "the Quota is the same")
		for v := range l.Views {
			_, tunable := v.(view.Tunable)
			require.False(t, tunable)
			k, _ := v.(view.Keyed).Key("a")
			require.NoError(t, k.(view.Resetter).Reset(t.Context(), "a gift"))
		}
		require.Equal(t, 200, request{key: "a"}.send(h).Code)
		for v := range l.Views {
			require.NoError(t, v.(view.Resetter).Reset(t.Context(), "a gift"))
		}
		require.Equal(t, 200, request{key: "c"}.send(h).Code)
		for s := range l.Observe {
			t.Fatal(s, "the Quota has metrics of its own")
		}
		time.Sleep(24 * time.Hour)
		require.Equal(t, 200, request{key: "c"}.send(h).Code)
	})
}

func TestARefusalOfAQuotaIsRefundedToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := quota.New(quota.Config{Limit: 9, Every: quota.Day})
		month := quota.New(quota.Config{Limit: 4, Every: quota.Month})
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{quotaPolicy("day", day), quotaPolicy("month", month)}}).Handler(okHandler)
		for range 4 {
			require.Equal(t, 200, request{key: "a"}.send(h).Code)
		}
		w := request{key: "a"}.send(h)
		require.Equal(t, 429, w.Code)
		require.Equal(t, "2678400", w.Header().Get("Retry-After"))
		require.Equal(t, `"day";r=5, "month";r=0;t=2678400`, w.Header().Get("RateLimit"))
		require.Equal(t, 5, day.Get("a").Take(0).Remaining)
	})
}
