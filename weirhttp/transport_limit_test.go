package weirhttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// A Transport obeys a Limit: a client is refused once, and its retry is allowed.
func TestTransportObeysLimit(t *testing.T) {
	policies := []weirhttp.Policy{{Name: "ten seconds", Rate: limiter.Per(5, 10*time.Second), Burst: 5, By: weirhttp.ByIP}}
	for name, strip := range map[string][]string{
		"by Retry-After": {"RateLimit"},
		"by RateLimit":   {"Retry-After"},
	} {
		t.Run(name, func(t *testing.T) {
			var limit *weirhttp.Limit
			var refused, served []time.Time
			inBubble(t, func(w http.ResponseWriter, r *http.Request) {
				limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = append(served, time.Now()) })).ServeHTTP(w, r)
			}, func(t *testing.T, base http.RoundTripper) {
				limit, refused, served = weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies}), nil, nil
				listening := weirhttp.NewTransport(weirhttp.ForAll(weir.New("g", weir.Config{Rate: limiter.PerSecond(1000), MaxWait: time.Minute})), weirhttp.TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
					resp, err := base.RoundTrip(req)
					if err == nil && resp.StatusCode == http.StatusTooManyRequests {
						refused = append(refused, time.Now())
						for _, header := range strip {
							require.NotEmpty(t, resp.Header.Get(header))
							resp.Header.Del(header)
						}
					}
					return resp, err
				})})
				client := &http.Client{Transport: listening}
				for range 8 {
					_, err := bodyText(client.Do(newGet(t, "http://a.example/")))
					require.NoError(t, err)
				}
				require.NotEmpty(t, refused)
				require.Len(t, served, 8-len(refused))
				for i, at := range served[5:] {
					require.GreaterOrEqual(t, at.Sub(refused[i]), 2*time.Second, "the limit is one request per 2s")
				}
			})
		})
	}
}
