package weirhttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

func TestEachHostHasItsOwnGate(t *testing.T) {
	down := map[string]bool{"a.example": true}
	transport := weirhttp.NewTransport(gatePerHost(opensAfterOneFailure()), weirhttp.TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		if down[req.URL.Host] {
			return nil, errDown
		}
		return newResponse(http.StatusOK), nil
	})})

	_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.ErrorIs(t, err, errDown)
	for range 3 {
		_, err = transport.RoundTrip(newGet(t, "https://a.example/"))
		require.ErrorIs(t, err, breaker.ErrOpen)
		sendAllowed(t, transport, "https://b.example/")
	}
}

func TestPanicOfTheBaseIsAFailure(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) { panic("boom") })})
	require.PanicsWithValue(t, "boom", func() { _, _ = transport.RoundTrip(newGet(t, "https://a.example/")) })
	require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, gate.Breaker().Counts())
}

func TestRequestsWithoutAGateAreSent(t *testing.T) {
	payments := weir.New("payments", opensAfterOneFailure())
	transport := weirhttp.NewTransport(func(r *http.Request) *weir.Gate {
		if r.URL.Host == "payments.example" {
			return payments
		}
		return nil
	}, weirhttp.TransportConfig{Base: alwaysRespond(500)})
	for range 3 {
		sendAllowed(t, transport, "https://elsewhere.example/")
	}
	sendAllowed(t, transport, "https://payments.example/")
	_, err := transport.RoundTrip(newGet(t, "https://payments.example/"))
	require.ErrorIs(t, err, breaker.ErrOpen)
}

func TestKeyOfAnyType(t *testing.T) {
	type key struct{ host, method string }
	group := weir.NewGroup[key]("by method", weir.GroupConfig{Gate: opensAfterOneFailure()})
	transport := weirhttp.NewTransport(weirhttp.Per(group, func(req *http.Request) key {
		return key{weirhttp.ByHost(req), req.Method}
	}), weirhttp.TransportConfig{Base: alwaysRespond(500)})
	sendAllowed(t, transport, "https://a.example/")
	_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.ErrorIs(t, err, breaker.ErrOpen)
	resp, err := transport.RoundTrip(newPost(t, "https://a.example/", strings.NewReader("x")))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// idleCloser is a base with a method CloseIdleConnections.
type idleCloser struct {
	http.RoundTripper
	closed bool
}

func (c *idleCloser) CloseIdleConnections() { c.closed = true }

func TestCloseIdleConnections(t *testing.T) {
	base := &idleCloser{RoundTripper: alwaysRespond(200)}
	client := &http.Client{Transport: weirhttp.NewTransport(gatePerHost(weir.Config{}), weirhttp.TransportConfig{Base: base})}
	client.CloseIdleConnections()
	require.True(t, base.closed)

	// does nothing
	weirhttp.NewTransport(gatePerHost(weir.Config{}), weirhttp.TransportConfig{Base: alwaysRespond(200)}).CloseIdleConnections()
}

func TestNewTransportNeedsAGateFunction(t *testing.T) {
	require.PanicsWithError(t, "weirhttp: NewTransport needs a gate function", func() { weirhttp.NewTransport(nil, weirhttp.TransportConfig{}) })
}

// A base that returns neither a response nor an error breaks the contract of RoundTripper, but
// causes no panic.
func TestBaseThatReturnsNothing(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	nothing := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) { return nil, nil })})
	resp, err := nothing.RoundTrip(newGet(t, "https://a.example/"))
	require.Nil(t, resp)
	require.NoError(t, err)
	require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, gate.Breaker().Counts())
}
