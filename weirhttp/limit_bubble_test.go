package weirhttp_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func TestServerInABubbleLeavesNoGoroutine(t *testing.T) {
	var g *allMiddleware
	handler := func(w http.ResponseWriter, r *http.Request) { g.wrap(handlerTaking(time.Second).ServeHTTP)(w, r) }
	inBubble(t, handler, func(t *testing.T, base http.RoundTripper) {
		g = newGuards(policyPerSecond(3, weirhttp.ByIP), weirhttp.Policy{Name: "hour", Rate: limiter.Per(5, time.Hour), Burst: 5, By: weirhttp.ByNothing})
		var passed, refused int
		start := time.Now()
		for range 10 {
			resp, err := base.RoundTrip(newRequest(t, "http://server/", nil))
			_, err = bodyText(resp, err)
			require.NoError(t, err)
			if resp.StatusCode == http.StatusOK {
				passed++
				continue
			}
			refused++
			wait, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
			require.NoError(t, err)
			require.GreaterOrEqual(t, wait, time.Second)
			time.Sleep(wait)
		}
		require.Equal(t, [2]int{7, 3}, [2]int{passed, refused}, "five at once, and two more after their Retry-After")
		require.Less(t, time.Since(start), 40*time.Minute)
		g.wantIdle(t, 10)
		synctest.Wait()
	})
}
