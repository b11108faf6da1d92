package interop_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// onePerMinute allows one request per minute and route, and does not limit /healthz.
func onePerMinute(route func(*http.Request) string) *weirhttp.Limit {
	return weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{{
			Name: "minute", Rate: limiter.Per(1, time.Minute), Burst: 1, By: route,
			When: func(r *http.Request) bool { return r.URL.Path != "/healthz" },
		}},
	})
}

// wantQuotaForEachRoute requires that each route has a quota of its own.
func wantQuotaForEachRoute(t *testing.T, h http.Handler) {
	for _, step := range []struct {
		path string
		want int
	}{
		{"/items", 200},
		{"/items", 429},
		{"/items/1", 200},
		{"/items/2", 429},
		{"/items/1", 429},
		{"/healthz", 200},
		{"/healthz", 200},
		{"/healthz", 200},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, step.path, http.NoBody))
		require.Equal(t, step.want, w.Code, step.path)
	}
}

func addChiRoutes(r chi.Router) {
	for _, path := range []string{"/items", "/items/{id}", "/healthz"} {
		r.Get(path, func(http.ResponseWriter, *http.Request) {})
	}
}

// captureLog writes what slog.Default logs to the buffer until the test ends.
func captureLog(t *testing.T, to *bytes.Buffer) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(to, nil)))
}

func TestALimitBeforeChiAsksItForTheRoute(t *testing.T) {
	router := chi.NewRouter()
	limit := onePerMinute(func(r *http.Request) string { return router.Find(chi.NewRouteContext(), r.Method, r.URL.Path) })
	router.Use(limit.Handler)
	addChiRoutes(router)
	wantQuotaForEachRoute(t, router)
}

func TestALimitAfterChiKnowsTheRoute(t *testing.T) {
	var log bytes.Buffer
	captureLog(t, &log)
	router := chi.NewRouter()
	limit := onePerMinute(weirhttp.ByRoute(nil))
	router.Group(func(r chi.Router) {
		r.Use(limit.Handler)
		addChiRoutes(r)
	})
	wantQuotaForEachRoute(t, router)
	require.Empty(t, log.String())
}

func TestALimitBeforeChiWithoutARouteLogsAnError(t *testing.T) {
	var log bytes.Buffer
	captureLog(t, &log)
	router := chi.NewRouter()
	router.Use(onePerMinute(weirhttp.ByRoute(nil)).Handler)
	addChiRoutes(router)
	for range 5 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/items", http.NoBody))
	}
	require.Equal(t, 1, strings.Count(log.String(), "http.Request.Pattern is empty"), log.String())
	require.Contains(t, log.String(), "level=ERROR")
}
