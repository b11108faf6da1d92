package weirhttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

func TestTransportConfigNamesAllFaults(t *testing.T) {
	bad := weirhttp.TransportConfig{Base: (*http.Transport)(nil), MaxRetryAfter: -time.Second}
	const want = "weirhttp: Base is a nil *http.Transport, must be set or left out\n" +
		"weirhttp: MaxRetryAfter is -1s, must not be negative, or Off"
	require.EqualError(t, bad.Validate(), want)
	gate := weirhttp.ForAll(weir.New("shop", weir.Config{}))
	require.PanicsWithError(t, want, func() { weirhttp.NewTransport(gate, bad) })
	for _, good := range []weirhttp.TransportConfig{
		{},
		{Base: http.DefaultTransport, MaxRetryAfter: breaker.Off},
		{Base: alwaysRespond(http.StatusOK), MaxRetryAfter: 1},
	} {
		require.NoError(t, good.Validate())
	}
}
