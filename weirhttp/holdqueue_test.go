package weirhttp_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// Requests queue, and the first response asks to wait for a minute. No request is sent in that
// minute, and none waits longer than MaxWait.
func TestQueuedCallsKeepToMaxWaitDuringAHold(t *testing.T) {
	config := weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: time.Second}
	for name, gates := range map[string]func() gateFunc{
		"one":      func() gateFunc { return weirhttp.ForAll(weir.New("g", config)) },
		"per host": func() gateFunc { return gatePerHost(config) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			sent := 0
			transport := weirhttp.NewTransport(gates(), weirhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				sent++
				return newResponse(http.StatusTooManyRequests, "Retry-After", "60"), nil
			})})
			var took [10]time.Duration
			var wg sync.WaitGroup
			for i := range took {
				wg.Go(func() {
					began := time.Now()
					if resp, err := transport.RoundTrip(newGet(t, "http://a.example/")); err == nil {
						_ = resp.Body.Close()
					}
					took[i] = time.Since(began)
				})
			}
			wg.Wait()
			for _, d := range took {
				require.LessOrEqual(t, d, time.Second, name)
			}
			require.Equal(t, 1, sent, name)
		})
	}
}
