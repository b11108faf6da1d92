package weirhttp_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirhttp"
)

// A transport and middleware are package variables that are used with the real clock, then in two
// bubbles, and then with the real clock again. Each time a healthy service is called, although the
// last request of the clock before was refused.
func TestTransportAndMiddlewareStartAgainWithEachClock(t *testing.T) {
	down := false
	transport := weirhttp.NewTransport(weirhttp.ForAll(weir.New("transport", weir.Config{})), weirhttp.TransportConfig{
		Base: baseFunc(func(*http.Request) (*http.Response, error) {
			if down {
				return newResponse(http.StatusServiceUnavailable, "Retry-After", "30"), nil
			}
			return newResponse(http.StatusOK), nil
		}),
	})
	service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	var shed http.Handler
	shed = weirhttp.Shed(inflight.New(inflight.Config{Limit: 3, Adaptive: true, Queue: inflight.Queue{Target: time.Millisecond}}), weirhttp.ShedConfig{})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down { // the request calls itself until there is no slot
				shed.ServeHTTP(w, r)
			}
		}))
	served := func(h http.Handler) func(*testing.T) (refused bool, wait time.Duration) {
		return func(t *testing.T) (bool, time.Duration) {
			w := request{}.send(h)
			if w.Code == http.StatusOK || w.Code == http.StatusInternalServerError {
				return false, 0
			}
			wait, err := time.ParseDuration(w.Header().Get("Retry-After") + "s")
			require.NoError(t, err)
			return true, wait
		}
	}
	for name, send := range map[string]func(*testing.T) (refused bool, wait time.Duration){
		"transport": func(t *testing.T) (bool, time.Duration) {
			resp, err := transport.RoundTrip(newGet(t, "http://host/"))
			if err != nil {
				return true, weir.RetryAfter(err)
			}
			require.NoError(t, resp.Body.Close())
			return false, 0
		},
		"guard": served(weirhttp.Guard(weirhttp.ForAll(weir.New("guard", weir.Config{})), weirhttp.GuardConfig{})(service)),
		"limit": served(weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(5, weirhttp.ByNothing)}}).Handler(service)),
		"shed":  served(shed),
	} {
		use := func(t *testing.T) {
			down = false
			refused, _ := send(t)
			require.False(t, refused, name)
			down = true
			var wait time.Duration
			for i := 0; !refused; i++ {
				require.Less(t, i, 100, name)
				refused, wait = send(t)
			}
			require.Positive(t, wait, name)
			require.LessOrEqual(t, wait, 2*time.Minute, name)
		}
		inBubble := func(t *testing.T) {
			use(t)
			time.Sleep(time.Hour)
			use(t)
		}
		use(t)
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
		use(t)
	}
}
