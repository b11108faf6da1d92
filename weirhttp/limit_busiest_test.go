package weirhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// refusingRemote is a Remote that refuses all requests.
type refusingRemote struct{}

func (refusingRemote) Take(context.Context, int) (limiter.Result, error) {
	return limiter.Result{Limit: 1, RetryAfter: time.Second}, nil
}

func TestBusiestCountsByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byHeader := weirhttp.ByHeader("X-Api-Key")
		policies := []weirhttp.Policy{
			{Name: "bucket", Rate: limiter.Per(1, time.Hour), Burst: 1, By: weirhttp.ByIP, ShowKeys: true},
			{Name: "window", Limit: 2, Window: time.Hour, By: byHeader, ShowKeys: true},
		}
		limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies, CountRefused: true})
		ask := func(key string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("X-Api-Key", key)
			w := httptest.NewRecorder()
			limit.Handler(emptyHandler).ServeHTTP(w, r)
			return w.Code
		}
		long := strings.Repeat("k", 100) // is stored as 32 bytes of SHA-256
		require.Equal(t, http.StatusOK, ask(long))
		require.Empty(t, limit.Busiest(9))
		for range 3 {
			require.Equal(t, http.StatusTooManyRequests, ask(long))
		}
		keys := limit.Busiest(9)
		require.Len(t, keys, 2)
		require.Equal(t, limiter.BusyKey{Limiter: "bucket", Key: "192.0.2.1", AtLeast: 3, AtMost: 3}, keys[0])
		require.Regexp(t, "^[0-9a-f]{64}$", keys[1].Key)
		require.Equal(t, limiter.BusyKey{Limiter: "window", Key: keys[1].Key, AtLeast: 2, AtMost: 2}, keys[1])

		policies[0].ShowKeys, policies[1].ShowKeys = false, false
		require.NoError(t, limit.Reconfigure(weirhttp.LimitConfig{Policies: policies}))
		require.Empty(t, limit.Busiest(9), "keys that were kept in clear")
		require.Equal(t, http.StatusTooManyRequests, ask(long), "quotas are kept")
		for _, k := range limit.Busiest(9) {
			require.Regexp(t, "^#[0-9a-f]{12}$", k.Key)
		}
	})
}

func TestBusiestCountsWhatARemoteRefuses(t *testing.T) {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "fleet", Remote: func(string) limiter.Remote { return refusingRemote{} }, By: weirhttp.ByIP, ShowKeys: true},
	}})
	for range 2 {
		limit.Handler(emptyHandler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	require.Equal(t, []limiter.BusyKey{{Limiter: "fleet", Key: "192.0.2.1", AtLeast: 2, AtMost: 2}}, limit.Busiest(9))
}

func TestBusiestCountsShadowedRequestsAndNetworks(t *testing.T) {
	for _, p := range []weirhttp.Policy{
		{Name: "p", Rate: limiter.Per(1, time.Hour), Burst: 1, By: weirhttp.ByIP, Shadow: true, ShowKeys: true},
		{Name: "p", Limit: 1, Window: time.Hour, By: weirhttp.ByIP, Shadow: true, ShowKeys: true},
	} {
		limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}})
		for range 3 {
			limit.Handler(emptyHandler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		}
		require.Equal(t, []limiter.BusyKey{{Limiter: "p", Key: "192.0.2.1", AtLeast: 2, AtMost: 2}}, limit.Busiest(9))
	}
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "p", Limit: 1, Window: time.Hour, By: weirhttp.ByIP, MaxKeys: 1, ShowKeys: true},
	}})
	for _, from := range []string{"192.0.2.1:1", "198.51.100.1:1", "198.51.100.2:1"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = from
		limit.Handler(emptyHandler).ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, []limiter.BusyKey{{Limiter: "p by network", Key: "198.51.100.0", AtLeast: 1, AtMost: 1}}, limit.Busiest(9))
}
