package weirhttp_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// Keys of 900 kB are nearly the longest that net/http accepts. Neither quotas nor remote limits
// keep them in memory.
func TestLongKeysAreNotKept(t *testing.T) {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(10, time.Hour)})
	start := func(r *http.Request) string { return r.Header.Get("X-Api-Key")[:8] }
	for what, policy := range map[string]weirhttp.Policy{
		"bucket":                           policyPerMinute(1, byAPIKey),
		"window":                           {Name: "minute", Limit: 1, Window: time.Minute, By: byAPIKey},
		"part of a long text":              {Name: "minute", Limit: 1, Window: time.Minute, By: start},
		"part of a long text, of a bucket": policyPerMinute(1, start),
		"combined":                         policyPerMinute(1, weirhttp.Combine(byAPIKey, weirhttp.ByIP)),
		"remote": {Name: "minute", By: byAPIKey, Remote: func(key string) limiter.Remote {
			users.Get(key).Take(1)
			return unlimitedRemote{}
		}},
	} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}}).Handler(okHandler)
		before := heapInUse()
		for i := range 50 {
			require.Equal(t, 200, request{key: fmt.Sprintf("%08d", i) + strings.Repeat("k", 900<<10)}.send(h).Code)
		}
		require.Less(t, heapInUse()-before, int64(10<<20), "%s: keys of 45 MB were sent", what)
		runtime.KeepAlive(h)
	}
	require.Equal(t, 50, users.Len(), "each has its own key")
}

// A key is copied when it is stored, but not for each request.
func TestLimitAllocatesNothingPerRequest(t *testing.T) {
	long := "a key " + strings.Repeat("k", 90)
	allocations := func(policy weirhttp.Policy) float64 {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Quiet: true, Policies: []weirhttp.Policy{policy}}).Handler(emptyHandler)
		r, w := &http.Request{RemoteAddr: "192.0.2.1:1000"}, discardWriter{http.Header{}}
		return testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) })
	}
	for what, by := range map[string]func(*http.Request) string{"ByIP": weirhttp.ByIP, "a part": func(*http.Request) string { return long[:60] }} {
		require.Zero(t, allocations(policyPerMinute(1e9, by)), what)
		require.Zero(t, allocations(weirhttp.Policy{Name: "window", Limit: 1e9, Window: time.Hour, By: by}), what)
	}
}

// A key with evenly spread requests takes the most memory, up to the largest number of spans.
func TestMemoryOfAWindowQuota(t *testing.T) {
	for requests, most := range map[int]int64{1: 450, 40: 1000} {
		synctest.Test(t, func(t *testing.T) {
			l := weirhttp.NewLimit(weirhttp.LimitConfig{Quiet: true, Policies: []weirhttp.Policy{
				{Name: "minute", Limit: 1000, Window: time.Minute, By: byAPIKey},
			}})
			h := l.Handler(okHandler)
			before := heapInUse()
			for range requests {
				for i := range 2000 {
					require.Equal(t, 200, request{key: fmt.Sprint(i)}.send(h).Code)
				}
				time.Sleep(2 * time.Second)
			}
			require.Less(t, (heapInUse()-before)/2000, most, "%d requests", requests)
			runtime.KeepAlive(l)
		})
	}
}
