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

// A request occupies its slot until its headers arrive, not until its body has been read.
func TestTransportBoundsRequestsInFlight(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Second)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Second)
	}, func(t *testing.T, base http.RoundTripper) {
		gates := map[string]gateFunc{
			"one gate":           weirhttp.ForAll(weir.New("api", weir.Config{MaxConcurrent: 1})),
			"per host":           gatePerHost(weir.Config{MaxConcurrent: 1}),
			"one gate, adaptive": weirhttp.ForAll(weir.New("api", weir.Config{MaxConcurrent: 1, Adaptive: true})),
			"per host, adaptive": gatePerHost(weir.Config{MaxConcurrent: 1, Adaptive: true}),
		}
		for name, gate := range gates {
			client := &http.Client{Transport: weirhttp.NewTransport(gate, weirhttp.TransportConfig{Base: base})}
			first, request := make(chan *http.Response, 1), newGet(t, "http://a.example/")
			go func() {
				resp, err := client.Do(request)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				first <- resp
			}()
			synctest.Wait()
			_, err := client.Do(newGet(t, "http://a.example/"))
			require.ErrorIs(t, err, inflight.ErrFull, name)
			require.ErrorIs(t, err, weir.ErrRefused, name)
			var refused *weirhttp.RefusedError
			require.ErrorAs(t, err, &refused, name)
			require.Positive(t, weir.RetryAfter(err), name)

			resp := <-first
			second, err := client.Do(newGet(t, "http://a.example/"))
			require.NoError(t, err, "%s: the body of the first response is still on its way", name)
			for _, r := range []*http.Response{resp, second} {
				_, err := bodyText(r, nil)
				require.NoError(t, err)
			}
		}
	})
}
