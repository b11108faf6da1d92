package weirhttp_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

// The throttle of a gate records the outcomes of requests, and refuses requests if they fail.
func TestThrottleRefusesRequestsOfATransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status, refuses := range map[int]bool{200: false, 503: true} {
			gate := weir.Join("search", weir.Parts{
				Breaker:  breaker.New("search", breaker.Config{Force: breaker.Disabled}),
				Throttle: throttle.New("search throttle", throttle.Config{}),
			})
			transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: alwaysRespond(status)})
			sent, refused := 0, 0
			for range 200 {
				_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
				if errors.Is(err, throttle.ErrRefused) {
					require.ErrorIs(t, err, weir.ErrRefused)
					refused++
				} else {
					require.NoError(t, err)
					sent++
				}
			}
			require.Equal(t, 200, sent+refused)
			require.Equal(t, refuses, refused > 50, "%d of 200", refused)
			require.Equal(t, refuses, refused > 0, "%d of 200", refused)
		}
	})
}
