package weirhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// A Remote is not asked for a negative number, which some implementations would allow.
func TestNegativeCostIsRefusedWithoutAskingRemotes(t *testing.T) {
	users := &remoteStore{limit: 5}
	for what, policies := range map[string][]weirhttp.Policy{
		"alone": {remotePolicy("api", users)}, "with another": {policyPerMinute(5, byAPIKey), remotePolicy("api", users)},
	} {
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies, Cost: func(*http.Request) int { return -1 }}).Handler(okHandler)
		w := request{key: "a"}.send(h)
		require.Equal(t, http.StatusTooManyRequests, w.Code, what)
		require.Empty(t, w.Header().Get("Retry-After"), what)
		require.Empty(t, users.used, what)
	}
}

// The tokens of a request are given back if a later Remote panics.
func TestPanickingRemoteTakesNothing(t *testing.T) {
	users := &remoteStore{limit: 5}
	broken := weirhttp.Policy{Name: "broken", By: byAPIKey, Remote: func(string) limiter.Remote { panic("broken") }}
	h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{remotePolicy("api", users), broken}}).Handler(okHandler)
	require.PanicsWithValue(t, "broken", func() { request{key: "a"}.send(h) })
	require.Zero(t, users.used["a"])
}

// shadowedRemote is a used-up remote limit in shadow mode. It allows requests and takes nothing.
type shadowedRemote struct{ refunded *int }

func (shadowedRemote) Take(context.Context, int) (limiter.Result, error) {
	return limiter.Result{OK: true, Limit: 1, RetryAfter: time.Second}, nil
}

func (s shadowedRemote) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	r, err := s.Take(ctx, n)
	return r, func(_ context.Context, n int) error {
		*s.refunded += n
		return nil
	}, err
}

func TestRemoteInShadowModeIsNotRefunded(t *testing.T) {
	refunded := 0
	shadow := weirhttp.Policy{Name: "shadow", By: byAPIKey, Remote: func(string) limiter.Remote { return shadowedRemote{&refunded} }}
	h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{shadow, remotePolicy("api", &remoteStore{limit: 0})}}).Handler(okHandler)
	require.Equal(t, 429, request{key: "a"}.send(h).Code)
	require.Zero(t, refunded)
}

// A client cannot avoid a charge by disconnecting.
func TestChargeOfARemoteIgnoresCancellation(t *testing.T) {
	users := &remoteStore{limit: 10}
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{remotePolicy("login", users)}})
	ctx, leave := context.WithCancel(t.Context())
	login := l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leave()
		l.Charge(r, 4)
	}))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody)
	r.Header.Set("X-Api-Key", "a")
	login.ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, 5, users.used["a"])
}

func TestPatternIsCopiedToTheOuterRequest(t *testing.T) {
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Proxies: weirhttp.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}})
	mux := http.NewServeMux()
	mux.HandleFunc("/a/{id}", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	r := httptest.NewRequest(http.MethodGet, "/a/1", http.NoBody)
	r.Header.Set("X-Forwarded-For", "203.0.113.1")
	require.Panics(t, func() { limit.Handler(mux).ServeHTTP(httptest.NewRecorder(), r) })
	require.Equal(t, "/a/{id}", r.Pattern, "the Pattern is copied even if the handler panics")
}

// A key whose requests were all given back is removed, so that there is room for another key.
func TestRefundedKeyIsRemovedFromAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := weirhttp.Policy{Name: "full", Rate: limiter.Per(1, time.Hour), By: byAPIKey, MaxKeys: 1}
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerWindow(5, time.Hour, byAPIKey), full}})
		h := l.Handler(okHandler)
		for _, c := range []struct {
			key  string
			want int
		}{{"has room", 200}, {"counts by network", 200}, {"third", 429}, {"fourth", 429}, {"fifth", 429}} {
			require.Equal(t, c.want, request{key: c.key}.send(h).Code, c.key)
		}
		require.InDelta(t, 2, readMetrics(l)["group.size window"], 0)
	})
}
