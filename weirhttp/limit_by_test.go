package weirhttp_test

import (
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

func TestLimitByAsksALimiterOfAnyKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := limiter.NewSlidingWindow(limiter.SlidingWindowConfig{Limit: 2, Window: 10 * time.Second})
		var told []weirhttp.Refusal
		server := weirhttp.LimitBy(func(*http.Request) (limiter.Result, error) { return window.Take(1), nil },
			weirhttp.LimitByConfig{Name: "api", OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { told = append(told, f) }})(hello)
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			return w
		}
		for _, left := range []string{`"api";r=1`, `"api";r=0`} {
			w := ask()
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, left, w.Header().Get("RateLimit"))
			require.Equal(t, `"api";q=2`, w.Header().Get("RateLimit-Policy"))
		}
		w := ask()
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, `"api";r=0;t=11`, w.Header().Get("RateLimit"))
		require.Equal(t, "11", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), `"violated-policies":["api"]`)
		require.Len(t, told, 1)
		require.Equal(t, []string{"api"}, told[0].Policies)
		time.Sleep(11 * time.Second)
		require.Equal(t, http.StatusOK, ask().Code)
	})
}

func TestLimitByWithoutADecisionServesNobody(t *testing.T) {
	away := errors.New("the store is away")
	var told weirhttp.Refusal
	server := weirhttp.LimitBy(func(*http.Request) (limiter.Result, error) { return limiter.Result{OK: true}, away },
		weirhttp.LimitByConfig{Name: "api", OnRefusal: func(_ *http.Request, f weirhttp.Refusal) { told = f }})(hello)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Empty(t, w.Header().Get("RateLimit"), "nothing is known")
	require.Equal(t, away, told.Err)
	require.NotContains(t, w.Body.String(), "store", "is nobody's business")
}

func TestLimitByOfWhatCanNeverBeHadTellsNoTime(t *testing.T) {
	server := weirhttp.LimitBy(func(*http.Request) (limiter.Result, error) {
		return limiter.Result{Limit: 5, Remaining: 5, RetryAfter: limiter.Never}, nil
	}, weirhttp.LimitByConfig{Name: "api"})(hello)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Empty(t, w.Header().Get("Retry-After"))
	require.Equal(t, `"api";r=5`, w.Header().Get("RateLimit"))
}

func TestLimitByRefusesWhatMakesNoSense(t *testing.T) {
	take := func(*http.Request) (limiter.Result, error) { return limiter.Result{}, nil }
	for _, name := range []string{"", `a"b`, "ä", string(make([]byte, 65))} {
		require.Panics(t, func() { weirhttp.LimitBy(take, weirhttp.LimitByConfig{Name: name}) }, name)
	}
	require.PanicsWithError(t, "weirhttp: LimitBy needs a function", func() { weirhttp.LimitBy(nil, weirhttp.LimitByConfig{Name: "api"}) })
}
