package weirhttp_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func TestFloodOfKeysIsBoundedAndEvictsNoKeyInUse(t *testing.T) {
	policy := weirhttp.Policy{Name: "client", Rate: limiter.Per(1, time.Hour), Burst: 1, By: byAPIKey, MaxKeys: 200}
	for _, shareNew := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shareNew), func(t *testing.T) {
			policy.ShareNew = shareNew
			l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
			h := l.Handler(okHandler)
			require.Equal(t, 200, request{key: "first"}.send(h).Code)
			for i := range 4000 {
				request{key: "flood" + strconv.Itoa(i)}.send(h)
			}
			require.Equal(t, 429, request{key: "first"}.send(h).Code, "the quota is still used up")
			require.Equal(t, 429, request{key: "stranger"}.send(h).Code)
			require.LessOrEqual(t, readMetrics(l)["group.size client"], 200.0)
		})
	}
}

func TestRequestWithoutRoomTakesNothing(t *testing.T) {
	full := weirhttp.Policy{Name: "client", Rate: limiter.Per(1, time.Hour), Burst: 1, By: byAPIKey, MaxKeys: 1}
	for _, policies := range [][]weirhttp.Policy{{policyPerMinute(10, weirhttp.ByNothing), full}, {full, policyPerMinute(10, weirhttp.ByNothing)}} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies}).Handler(okHandler)
		require.Equal(t, 200, request{key: "first"}.send(h).Code)
		require.Equal(t, 200, request{key: "second"}.send(h).Code, "the quota of its network for new keys")
		for range 20 {
			w := request{key: "stranger"}.send(h)
			require.Equal(t, 429, w.Code)
			require.Contains(t, w.Header().Get("RateLimit"), `"minute";r=8`)
			require.Contains(t, w.Header().Get("RateLimit"), `"client";r=0`)
		}
	}
}

func TestLongKeysAreDistinct(t *testing.T) {
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{policyPerMinute(1, byAPIKey)},
	}).Handler(okHandler)
	long := strings.Repeat("k", 1<<20)
	for _, c := range []struct {
		key  string
		want int
	}{{long, 200}, {long, 429}, {long + "x", 200}, {long[:64], 200}, {long[:65], 200}, {long[:64], 429}} {
		require.Equalf(t, c.want, request{key: c.key}.send(h).Code, "a key of %d bytes", len(c.key))
	}
}

func TestLongClientKeysAreNotKept(t *testing.T) {
	for what, client := range map[string]func(*http.Request) string{
		"a long key":                  byAPIKey,
		"a short part of a long text": func(r *http.Request) string { return r.Header.Get("X-Api-Key")[:8] },
	} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(1, client)}}).Handler(okHandler)
		before := heapInUse()
		for i := range 50 {
			require.Equal(t, 200, request{key: fmt.Sprintf("%08d", i) + strings.Repeat("k", 1<<20)}.send(h).Code)
		}
		require.Less(t, heapInUse()-before, int64(10<<20), "%s: keys of 50 MB were sent", what)
		runtime.KeepAlive(h)
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A refusal, the log and the metrics say that the policy has no room for new keys.
func TestAFullPolicySaysSo(t *testing.T) {
	for _, p := range []weirhttp.Policy{
		{Name: "client", Rate: limiter.Per(1, time.Hour), Burst: 1, By: byAPIKey, MaxKeys: 8},
		{Name: "client", Limit: 1, Window: time.Hour, By: byAPIKey, MaxKeys: 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			setDefaultLogger(t, slog.NewTextHandler(&out, nil))
			var err error
			l := weirhttp.NewLimit(weirhttp.LimitConfig{
				Policies: []weirhttp.Policy{p}, OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { err = f.Err },
			})
			ask := func(key, from string) (refused bool, _ error) {
				err = nil
				return request{key: key, from: from}.send(l.Handler(okHandler)).Code == http.StatusTooManyRequests, err
			}
			requireRefused := func(want, key, from string) {
				t.Helper()
				refused, err := ask(key, from)
				require.True(t, refused)
				if want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, want)
				}
			}
			for i := range 8 {
				refused, _ := ask(strconv.Itoa(i), "")
				require.False(t, refused)
			}
			requireRefused("", "0", "")
			require.Empty(t, out.String())

			for _, from := range []string{"203.0.113.1:1", "192.0.2.1:1"} {
				refused, _ := ask("new", from)
				require.False(t, refused, "the quota of its network for new keys")
			}
			requireRefused(`weirhttp: policy "client" has no room for the key: MaxKeys is 8, and the quota that new keys of the same network share is used up`, "newer", "203.0.113.2:1")
			requireRefused(`weirhttp: policy "client" has no room for the key: MaxKeys is 8, nor for its network: MaxKeys/4 is 2`, "other", "198.51.100.1:1")
			require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
			require.Contains(t, out.String(), "level=WARN")
			require.Contains(t, out.String(), "policy=client MaxKeys=8 ShareNew=false")
			time.Sleep(time.Minute)
			requireRefused(`weirhttp: policy "client" has no room for the key: MaxKeys is 8, nor for its network: MaxKeys/4 is 2`, "other", "198.51.100.1:1")
			require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
			require.Equal(t, [3]float64{2, 3, 0}, requestCounts(l, "client by network"))
			require.InDelta(t, 2, readMetrics(l)["no_room client by network"], 0)
		})
	}
}
