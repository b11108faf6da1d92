package recipes_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

// routers returns a router of each kind with the middleware. GET /ok answers 200, and GET /down 503
// in the way that is usual for the router.
func routers(inside ...recipes.Middleware) map[string]http.Handler {
	gin.SetMode(gin.ReleaseMode)
	c, g, e, engine := chi.NewRouter(), mux.NewRouter(), echo.New(), gin.New()
	for _, m := range inside {
		recipes.UseIn(c, g, e, engine, weirhttp.ByHeader("X-User"), m)
	}
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	c.Get("/ok", ok)
	c.Get("/down", down)
	g.HandleFunc("/ok", ok)
	g.HandleFunc("/down", down)
	e.GET("/ok", func(c *echo.Context) error { return c.String(http.StatusOK, "served") })
	e.GET("/down", func(*echo.Context) error { return echo.NewHTTPError(http.StatusServiceUnavailable, "down") })
	engine.GET("/ok", func(c *gin.Context) { c.String(http.StatusOK, "served") })
	engine.GET("/down", func(c *gin.Context) { c.Status(http.StatusServiceUnavailable) })
	return map[string]http.Handler{"chi": c, "gorilla": g, "echo": e, "gin": engine}
}

// request returns the status of a request of the user. A refused request must not be served.
func request(t *testing.T, h http.Handler, path, user string) int {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code == http.StatusTooManyRequests {
		require.NotContains(t, w.Body.String(), "served")
	}
	return w.Code
}

func noLogin(next http.Handler) http.Handler { return next }

func TestALimitPerUserAroundEachRouter(t *testing.T) {
	for name, router := range routers() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := recipes.Protect(router, noLogin, weirhttp.ByHeader("X-User"))
				for range 10 {
					require.Equal(t, 200, request(t, h, "/ok", "alice"))
				}
				require.Equal(t, 429, request(t, h, "/ok", "alice"))
				require.Equal(t, 200, request(t, h, "/ok", "bob"))
			})
		})
	}
}

// onePerMinute is a limit of one request per minute and key.
func onePerMinute(by func(*http.Request) string) recipes.Middleware {
	return weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{{
		Name: "minute", Rate: limiter.PerMinute(1), Burst: 1, By: by,
	}}}).Handler
}

func TestALimitInsideEachRouter(t *testing.T) {
	for name, router := range routers(onePerMinute(recipes.UserOf)) {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 200, request(t, router, "/ok", name+" alice"))
			require.Equal(t, 429, request(t, router, "/ok", name+" alice"))
			require.Equal(t, 200, request(t, router, "/ok", name+" bob"))
		})
	}
}

func TestALimitPerRouteInsideEachRouter(t *testing.T) {
	byRoute := func(name string) http.Handler { return routers(onePerMinute(weirhttp.ByRoute(nil)))[name] }
	router := chi.NewRouter()
	router.Use(onePerMinute(recipes.ByChiRoute(router)))
	for _, path := range []string{"/ok", "/down"} {
		router.Get(path, func(http.ResponseWriter, *http.Request) {})
	}
	for name, router := range map[string]http.Handler{"chi": router, "echo": byRoute("echo"), "gin": byRoute("gin")} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 200, request(t, router, "/ok", ""))
			require.Equal(t, 429, request(t, router, "/ok", ""))
			require.NotEqual(t, 429, request(t, router, "/down", ""))
		})
	}
}

// A limit does not see what echo and gin store in their own contexts. It takes the address of the
// client instead, so all users behind one address share a limit.
func TestALimitDoesNotSeeTheContextsOfEchoAndGin(t *testing.T) {
	e, engine := echo.New(), gin.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			c.Set("user", c.Request().Header.Get("X-User"))
			return next(c)
		}
	}, echo.WrapMiddleware(onePerMinute(recipes.UserOf)))
	engine.Use(func(c *gin.Context) { c.Set("user", c.GetHeader("X-User")) }, recipes.ForGin(onePerMinute(recipes.UserOf)))
	e.GET("/ok", func(c *echo.Context) error { return c.String(http.StatusOK, "served") })
	engine.GET("/ok", func(c *gin.Context) { c.String(http.StatusOK, "served") })
	for name, router := range map[string]http.Handler{"echo": e, "gin": engine} {
		require.Equal(t, 200, request(t, router, "/ok", "alice"), name)
		require.Equal(t, 429, request(t, router, "/ok", "bob"), name)
	}
}

// A request waits for a slot for twenty times Target if the queue is not overloaded before.
func TestRequestsBeyondTheBoundAreShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		h := recipes.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }), noLogin, weirhttp.ByHeader("X-User"))
		var served sync.WaitGroup
		for i := range 200 {
			served.Go(func() { request(t, h, "/ok", string(rune('a'+i))) })
		}
		synctest.Wait()
		began := time.Now()
		require.Equal(t, 503, request(t, h, "/ok", "late"))
		require.Equal(t, 20*20*time.Millisecond, time.Since(began))
		close(end)
		served.Wait()
		require.Equal(t, 200, request(t, h, "/ok", "late"))
	})
}

// echo writes the response of an error after all middleware, and gin writes past the
// ResponseWriter of the guard.
func TestAGuardInsideEchoAndGinSeesNoFailure(t *testing.T) {
	gate := weir.New("routes", weir.Config{})
	guard := weirhttp.Guard(weirhttp.ForAll(gate), weirhttp.GuardConfig{})
	inside := routers(guard)
	for name, want := range map[string]window.Totals{
		"chi": {Failures: 1}, "gorilla": {Failures: 1}, "echo": {Successes: 1}, "gin": {Successes: 1},
	} {
		require.Equal(t, want, countedBy(gate, func() { require.Equal(t, 503, request(t, inside[name], "/down", "")) }), name)
	}
}

func TestAGuardAroundEachRouterSeesFailures(t *testing.T) {
	for name, router := range routers() {
		gate := weir.New(name, weir.Config{})
		h := weirhttp.Guard(weirhttp.ForAll(gate), weirhttp.GuardConfig{})(router)
		got := countedBy(gate, func() { require.Equal(t, 503, request(t, h, "/down", "")) })
		require.Equal(t, window.Totals{Failures: 1}, got, name)
	}
}

// countedBy returns the successes and failures that the gate counts during f.
func countedBy(gate *weir.Gate, f func()) window.Totals {
	before := gate.Totals()
	f()
	now := gate.Totals().Minus(before)
	return window.Totals{Successes: now.Successes, Failures: now.Failures}
}
