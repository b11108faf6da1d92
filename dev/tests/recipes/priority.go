package recipes

import (
	"net/http"
	"strings"
	"time"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirhttp"
)

//readme:priority

// ShedByPriority returns middleware that serves at most limit requests at once. Of those that
// wait, it prefers those to /checkout, and refuses those of crawlers first.
func ShedByPriority(limit int) func(http.Handler) http.Handler {
	return weirhttp.Shed(inflight.New(inflight.Config{
		Name: "shop", Limit: limit, MaxWaiters: 2 * limit, Queue: inflight.Queue{Target: 20 * time.Millisecond},
	}), weirhttp.ShedConfig{Caller: func(r *http.Request) inflight.Caller {
		switch {
		case strings.HasPrefix(r.URL.Path, "/checkout"):
			return inflight.Caller{Priority: inflight.Critical}
		case strings.Contains(r.UserAgent(), "bot"):
			return inflight.Caller{Priority: inflight.Background}
		}
		return inflight.Caller{}
	}})
}

//readme:end
