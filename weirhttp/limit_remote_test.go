package weirhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// remoteStore has one remote limit per key.
type remoteStore struct {
	limit int
	err   error
	used  map[string]int
}

func (s *remoteStore) limitOf(key string) limiter.Remote { return &storedRemote{s, key} }

type storedRemote struct {
	*remoteStore
	key string
}

func (s *storedRemote) Take(ctx context.Context, n int) (limiter.Result, error) {
	if err := errors.Join(ctx.Err(), s.err); err != nil {
		return limiter.Result{OK: true}, err
	}
	r := limiter.Result{Limit: s.limit, Remaining: s.limit - s.used[s.key]}
	switch {
	case n > s.limit:
		r.RetryAfter = limiter.Never
	case n > r.Remaining:
		r.RetryAfter = 10500 * time.Millisecond
	default:
		s.used[s.key] += n
		r.OK, r.Remaining = true, r.Remaining-n
	}
	return r, nil
}

func (s *storedRemote) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	r, err := s.Take(ctx, n)
	return r, func(ctx context.Context, n int) error {
		if ctx.Err() == nil {
			s.used[s.key] -= n
		}
		return ctx.Err()
	}, err
}

func remotePolicy(name string, s *remoteStore) weirhttp.Policy {
	s.used = map[string]int{}
	return weirhttp.Policy{Name: name, Remote: s.limitOf, By: byAPIKey}
}

func TestRemoteLimitsEachKey(t *testing.T) {
	var refusals []weirhttp.Refusal
	users := &remoteStore{limit: 2}
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies:  []weirhttp.Policy{remotePolicy("api", users)},
		OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
	}).Handler(okHandler)
	for _, left := range []string{`"api";r=1`, `"api";r=0`} {
		w := request{key: "a"}.send(h)
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, left, w.Header().Get("RateLimit"))
		require.Equal(t, `"api";q=2`, w.Header().Get("RateLimit-Policy"))
	}
	w := request{key: "a"}.send(h)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, `"api";r=0;t=11`, w.Header().Get("RateLimit"))
	require.Equal(t, "11", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), `"violated-policies":["api"]`)
	require.Equal(t, []weirhttp.Refusal{{Status: 429, Policies: []string{"api"}, RetryAfter: 10500 * time.Millisecond}}, refusals)
	require.Equal(t, http.StatusOK, request{key: "b"}.send(h).Code)
	require.Equal(t, http.StatusOK, request{from: "192.0.2.1:1"}.send(h).Code)
	require.Equal(t, map[string]int{"a": 2, "b": 1, "\x00192.0.2.1": 1}, users.used, "the key of an address differs from any header")
}

// If a Remote returns an error, the request is not counted as refused, and nothing is taken.
func TestErrorOfARemoteIsNotARefusal(t *testing.T) {
	unavailable := errors.New("the store is unavailable")
	var refusals []weirhttp.Refusal
	first, second := &remoteStore{limit: 5}, &remoteStore{limit: 5, err: unavailable}
	l := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies:  []weirhttp.Policy{remotePolicy("first", first), policyPerMinute(5, byAPIKey), remotePolicy("second", second)},
		OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
	})
	w := request{key: "a"}.send(l.Handler(okHandler))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Empty(t, w.Header().Get("RateLimit"), "there are no headers without a decision")
	require.NotContains(t, w.Body.String(), "store", "the cause is not sent to clients")
	require.Len(t, refusals, 1)
	require.ErrorIs(t, refusals[0].Err, unavailable)
	require.EqualError(t, refusals[0].Err, `weirhttp: policy "second" came to no decision: the store is unavailable`)
	require.Empty(t, refusals[0].Policies)
	require.Zero(t, first.used["a"], "the token was given back")
	require.Equal(t, [3]float64{0, 0, 0}, requestCounts(l, "minute"), "the policy was not asked")
}

func TestDisconnectedClientIsNotRefused(t *testing.T) {
	users := &remoteStore{limit: 5}
	var refusals []weirhttp.Refusal
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies:  []weirhttp.Policy{remotePolicy("api", users)},
		OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f) },
	}).Handler(okHandler)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
	require.Empty(t, refusals)
	require.Empty(t, users.used)
}

func TestRefusalForeverHasNoRetryAfter(t *testing.T) {
	h := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{remotePolicy("api", &remoteStore{limit: 5})}, Cost: func(*http.Request) int { return 6 },
	}).Handler(okHandler)
	w := request{}.send(h)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Empty(t, w.Header().Get("Retry-After"))
	require.Equal(t, `"api";r=5`, w.Header().Get("RateLimit"))
}

// If one policy refuses a request, nothing is taken from the others.
func TestLocalAndRemotePoliciesTakeAllOrNone(t *testing.T) {
	for name, limits := range map[string][3]int{"the local one refuses": {2, 9, 9}, "the first remote": {9, 2, 9}, "the last": {9, 9, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, last := &remoteStore{limit: limits[1]}, &remoteStore{limit: limits[2]}
				local := weirhttp.Policy{Name: "local", Limit: limits[0], Window: time.Hour, By: byAPIKey}
				l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{remotePolicy("first", first), local, remotePolicy("last", last)}})
				h := l.Handler(okHandler)
				for i := range 6 {
					w := request{key: "a"}.send(h)
					require.Equal(t, i < 2, w.Code == 200)
				}
				require.Equal(t, [2]int{2, 2}, [2]int{first.used["a"], last.used["a"]})
				require.InDelta(t, 2, requestCounts(l, "local")[0], 0)
			})
		})
	}
}

func TestChargeOfARemote(t *testing.T) {
	users := &remoteStore{limit: 10}
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{remotePolicy("login", users)}})
	login := l.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.Charge(r, 6)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	for _, want := range []int{401, 401, 429} {
		require.Equal(t, want, request{key: "a"}.send(login).Code)
	}
	require.Equal(t, 10, users.used["a"], "1+6, 1, and the remaining 2")
}

// debtStore is a remoteStore whose keys can have debts.
type debtStore struct{ remoteStore }

func (s *debtStore) limitOf(key string) limiter.Remote {
	return &indebted{storedRemote{&s.remoteStore, key}}
}

type indebted struct{ storedRemote }

func (d *indebted) Charge(ctx context.Context, n int) error {
	if ctx.Err() == nil {
		d.used[d.key] += n
	}
	return errors.Join(ctx.Err(), d.err)
}

// A Remote that can have debts is charged for what was used beyond its limit, even if the client
// has gone away or the Remote fails.
func TestChargeLeavesADebtAtARemote(t *testing.T) {
	users := &debtStore{remoteStore{limit: 10}}
	p := remotePolicy("users", &users.remoteStore)
	p.Remote = users.limitOf
	l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}})
	h := l.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, leave := context.WithCancel(r.Context())
		leave()
		l.Charge(r.WithContext(ctx), 25)
		w.WriteHeader(http.StatusOK)
	}))
	for _, want := range []int{200, 429} {
		require.Equal(t, want, request{key: "a"}.send(h).Code)
	}
	require.Equal(t, 26, users.used["a"])
	users.err = errors.New("away")
	r := request{key: "b"}
	require.Equal(t, 503, r.send(h).Code)
}
