package weirhttp_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

// The throttle of a transport's gate counts a response with status 503 as a failure, as the breaker
// does.
func TestTransportRecordsOutcomesWithAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := throttle.New("search throttle", throttle.Config{})
		gate := weir.Join("search", weir.Parts{Breaker: breaker.New("search", breaker.Config{FailureRate: breaker.Off}), Throttle: th})
		transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: alwaysRespond(503)})
		refused := int64(0)
		for range 200 {
			resp, err := transport.RoundTrip(newGet(t, "https://search.example/"))
			if err != nil {
				require.ErrorIs(t, err, throttle.ErrRefused)
				require.ErrorIs(t, err, weir.ErrRefused)
				refused++
				continue
			}
			require.NoError(t, resp.Body.Close())
		}
		require.Positive(t, refused)
		require.Equal(t, refused, th.Totals().Refused)
		require.Equal(t, 200-refused, th.Totals().Failures)
	})
}
