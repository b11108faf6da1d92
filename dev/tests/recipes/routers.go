package recipes

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
	"github.com/labstack/echo/v5"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

//readme:server

// Protect serves at most 200 requests at once, and five per second to each user.
func Protect(router http.Handler, authenticate func(http.Handler) http.Handler, user func(*http.Request) string) http.Handler {
	shed := weirhttp.Shed(inflight.New(inflight.Config{
		Name: "api", Limit: 200, MaxWaiters: 1000, Queue: inflight.Queue{Target: 20 * time.Millisecond},
	}), weirhttp.ShedConfig{})
	perUser := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "user", Rate: limiter.PerSecond(5), Burst: 10, By: user},
	}})
	return shed(authenticate(perUser.Handler(router)))
}

//readme:end

// Middleware is the form that package weirhttp has.
type Middleware = func(http.Handler) http.Handler

// UseIn puts the middleware into a router.
func UseIn(c *chi.Mux, g *mux.Router, e *echo.Echo, engine *gin.Engine, limit Middleware) {
	//readme:use
	c.Use(limit)                      // chi
	g.Use(limit)                      // gorilla/mux
	e.Use(echo.WrapMiddleware(limit)) // echo v5
	engine.Use(ForGin(limit))         // gin
	//readme:end
}

//readme:gin

// ForGin returns gin's form of a Limit or Shed.
func ForGin(limit Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		allowed := false
		limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			allowed, c.Request = true, r
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !allowed {
			c.Abort()
		}
	}
}

//readme:end
