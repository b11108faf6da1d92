package recipes

import (
	"context"
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

//readme:user

type userKey struct{}

// WithUser returns the request with its user. An authentication calls it.
func WithUser(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user))
}

// UserOf returns the user of a request. It is the By of a policy.
func UserOf(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

//readme:end

// UseIn puts an authentication and the middleware into a router.
func UseIn(c *chi.Mux, g *mux.Router, e *echo.Echo, engine *gin.Engine, login func(*http.Request) string, limit Middleware) {
	//readme:use
	authenticate := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, WithUser(r, login(r))) })
	}
	c.Use(authenticate, limit)                           // chi
	g.Use(authenticate, limit)                           // gorilla/mux
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc { // echo v5
		return func(c *echo.Context) error {
			c.Request().Pattern = c.Path() // for ByRoute(nil)
			c.SetRequest(WithUser(c.Request(), login(c.Request())))
			return next(c)
		}
	}, echo.WrapMiddleware(limit))
	engine.Use(func(c *gin.Context) { // gin
		c.Request.Pattern = c.FullPath() // for ByRoute(nil)
		c.Request = WithUser(c.Request, login(c.Request))
	}, ForGin(limit))
	//readme:end
}

// ByChiRoute returns a key function for a limit that is a middleware of the router.
func ByChiRoute(router chi.Router) func(*http.Request) string {
	//readme:chiroute
	by := func(r *http.Request) string {
		return router.Find(chi.NewRouteContext(), r.Method, r.URL.Path)
	}
	//readme:end
	return by
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
