package weirhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func policyPerDay(n int, by func(*http.Request) string) weirhttp.Policy {
	return weirhttp.Policy{Name: "day", Rate: limiter.Per(float64(n), 24*time.Hour), Burst: n, By: by, MaxKeys: 1000}
}

// sendFromNetworks sends one request from each of a number of /64 networks in an IPv6 /47. It
// returns how many were allowed.
func sendFromNetworks(h http.Handler, networks int) (passed int) {
	for i := range networks {
		if (request{from: fmt.Sprintf("[2001:db8:%x:%x::1]:9", i>>16, i&0xffff)}).send(h).Code == http.StatusOK {
			passed++
		}
	}
	return passed
}

func TestFloodFromOneNetworkRefusesOnlyThatNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerDay(20, weirhttp.ByIP)}})
		h := l.Handler(okHandler)
		for range 20 {
			require.Equal(t, 200, request{from: "192.0.2.1:1"}.send(h).Code)
		}
		passed := sendFromNetworks(h, 5000)
		require.LessOrEqual(t, passed, 1000+20, "one request per key, and the quota of the network")
		require.Greater(t, passed, 800)
		require.Equal(t, 429, request{from: "[2001:db8:ffff::1]:1"}.send(h).Code, "a new key of that network")
		for i := range 60 { // fewer than the 250 networks that are stored
			for _, from := range []string{fmt.Sprintf("198.51.%d.1:1", i), fmt.Sprintf("[2001:%x::1]:1", 0x1000+i)} {
				require.Equal(t, 200, request{from: from}.send(h).Code, from)
			}
		}
		for range 19 {
			require.Equal(t, 200, request{from: "198.51.0.9:1"}.send(h).Code, "the quota of its network has 19 left")
		}
		w := request{from: "198.51.0.210:1"}.send(h)
		require.Equal(t, 429, w.Code)
		require.Equal(t, "4320", w.Header().Get("Retry-After"), "20 requests per day: the exact time")
		require.Equal(t, 429, request{from: "192.0.2.1:1"}.send(h).Code, "the key has not been evicted")

		seen := readMetrics(l)
		require.LessOrEqual(t, seen["group.size day"], 1000.0)
		require.LessOrEqual(t, seen["group.size day by network"], 250.0)
		require.GreaterOrEqual(t, seen["requests day by network allowed"], 20+120+19.0)
	})
}

func TestFloodOfInventedKeysRefusesOnlyItsNetwork(t *testing.T) {
	l := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{policyPerDay(5, byAPIKey)},
	})
	h := l.Handler(okHandler)
	for i := range 5000 {
		request{from: "203.0.113.7:1", key: fmt.Sprint("made up ", i)}.send(h)
	}
	require.Equal(t, 429, request{from: "203.0.113.8:1", key: "neighbour"}.send(h).Code)
	require.Equal(t, 200, request{from: "192.0.2.1:1", key: "somebody"}.send(h).Code)
}

func TestFloodFromManyNetworksIsBounded(t *testing.T) {
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerDay(5, weirhttp.ByIP)}})
	h := l.Handler(okHandler)
	for i := range 20_000 {
		request{from: fmt.Sprintf("%d.%d.%d.1:1", 1+i>>16, i>>8&0xff, i&0xff)}.send(h)
	}
	seen := readMetrics(l)
	require.LessOrEqual(t, seen["group.size day"], 1000.0)
	require.LessOrEqual(t, seen["group.size day by network"], 250.0)
	require.Equal(t, 429, request{from: "192.0.2.1:1"}.send(h).Code)
}

// A request that another policy refuses takes nothing from the quota of its network.
func TestNewKeysTakeFromAllPoliciesOrNone(t *testing.T) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		both := [2]weirhttp.Policy{policyPerDay(5, weirhttp.ByIP), {Name: "tight", Rate: limiter.Per(1, 24*time.Hour), Burst: 1, By: weirhttp.ByIP, MaxKeys: 1}}
		both[0].MaxKeys = 1
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{both[order[0]], both[order[1]]}})
		h := l.Handler(okHandler)
		require.Equal(t, 200, request{from: "192.0.2.1:1"}.send(h).Code)
		require.Equal(t, 200, request{from: "198.51.100.1:1"}.send(h).Code)
		for range 10 {
			require.Equal(t, 429, request{from: "198.51.100.2:1"}.send(h).Code)
		}
		require.NoError(t, l.Reconfigure(weirhttp.LimitConfig{Policies: both[:1]}))
		w := request{from: "198.51.100.3:1"}.send(h)
		require.Equal(t, `"day";r=3`, strings.Split(w.Header().Get("RateLimit"), ";t")[0], "two of five requests are used")
	}
}

func TestReconfigureKeepsTheQuotasOfNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := policyPerDay(3, weirhttp.ByIP)
		policy.MaxKeys = 1
		config := func() weirhttp.LimitConfig { return weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}} }
		l := weirhttp.NewLimit(config())
		h := l.Handler(okHandler)
		for _, from := range []string{"192.0.2.1:1", "198.51.100.1:1", "198.51.100.2:1"} {
			require.Equal(t, 200, request{from: from}.send(h).Code)
		}
		policy.Rate, policy.Burst = limiter.Per(2, 24*time.Hour), 2
		require.NoError(t, l.Reconfigure(config()))
		require.Equal(t, 200, request{from: "198.51.100.3:1"}.send(h).Code, "the third of three requests")
		require.Equal(t, 429, request{from: "198.51.100.4:1"}.send(h).Code)
		policy.Shadow = true
		require.NoError(t, l.Reconfigure(config()))
		require.Equal(t, 200, request{from: "198.51.100.4:1"}.send(h).Code)
		require.InDelta(t, 1, readMetrics(l)["requests day by network shadowed"], 0)
		policy.Shadow = false
		require.NoError(t, l.Reconfigure(config()))
		require.Equal(t, 429, request{from: "198.51.100.4:1"}.send(h).Code)
	})
}

// A charge of any size is fast. If there is no room for the key, the charge is taken from the quota
// of the network.
func TestChargesOfNewKeysAreTakenFromTheirNetwork(t *testing.T) {
	for _, shareNew := range []bool{false, true} {
		policy := policyPerDay(1, weirhttp.ByIP)
		policy.Burst, policy.MaxKeys, policy.ShareNew = 1_000_000_000, 1, shareNew
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
		h := l.Handler(okHandler)
		require.Equal(t, 200, request{from: "192.0.2.1:1"}.send(h).Code)
		require.Equal(t, 200, request{from: "198.51.100.1:1"}.send(h).Code)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		require.NoError(t, err)
		r.RemoteAddr = "198.51.100.1:1"
		began := testenv.Running()
		l.Charge(r, 1_000_000_000)
		l.Charge(r, 1_000_000_000)
		require.Less(t, testenv.Running()-began, time.Second, shareNew)
		require.Equal(t, 429, request{from: "198.51.100.1:1"}.send(h).Code, shareNew)
		require.Equal(t, 200, request{from: "192.0.2.1:1"}.send(h).Code, "the quota of another key is unchanged")
	}
}

// A request without room for its key is counted once, under its network.
func TestRequestCountedByNetworkIsCountedOnce(t *testing.T) {
	for _, policy := range []weirhttp.Policy{policyPerDay(2, weirhttp.ByIP), {Name: "day", Limit: 2, Window: 24 * time.Hour, By: weirhttp.ByIP}} {
		for _, shadow := range []bool{false, true} {
			policy.MaxKeys, policy.Shadow = 1, shadow
			l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policy}})
			h := l.Handler(okHandler)
			request{from: "192.0.2.1:1"}.send(h)
			for range 3 {
				request{from: "198.51.100.1:1"}.send(h)
			}
			seen := readMetrics(l)
			require.InDelta(t, 1, seen["requests day allowed"], 0)
			require.InDelta(t, 0, seen["requests day refused"]+seen["requests day shadowed"], 0)
			require.InDelta(t, 2, seen["requests day by network allowed"], 0)
			require.InDelta(t, 1, seen["requests day by network refused"]+seen["requests day by network shadowed"], 0)
		}
	}
}

// A request whose network has used up its quota is refused before a Remote is called.
func TestUsedUpNetworkRefusesBeforeRemotesAreCalled(t *testing.T) {
	for _, policy := range []weirhttp.Policy{policyPerDay(1, weirhttp.ByIP), {Name: "day", Limit: 1, Window: 24 * time.Hour, By: weirhttp.ByIP}} {
		policy.MaxKeys = 1
		fleet := &remoteStore{limit: 1000, used: map[string]int{}}
		asked := 0
		remote := weirhttp.Policy{Name: "fleet", By: weirhttp.ByNothing, Remote: func(key string) limiter.Remote {
			asked++
			return fleet.limitOf(key)
		}}
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{remote, policy}}).Handler(okHandler)
		require.Equal(t, 200, request{from: "192.0.2.1:1"}.send(h).Code)
		require.Equal(t, 200, request{from: "198.51.100.1:1"}.send(h).Code)
		require.Equal(t, 2, asked)
		require.Equal(t, 429, request{from: "198.51.100.2:1"}.send(h).Code)
		require.Equal(t, 2, asked)
	}
}
