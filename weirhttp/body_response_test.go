package weirhttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

// respondWithBody returns a base that responds with status 200 and the body.
func respondWithBody(body io.ReadCloser) http.RoundTripper {
	return baseFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
	})
}

// failingBody returns a body that fails after 4 bytes.
func failingBody() io.ReadCloser {
	return io.NopCloser(io.MultiReader(strings.NewReader("some"), iotest.ErrReader(io.ErrUnexpectedEOF)))
}

func TestFailedBodyIsCountedOnce(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: respondWithBody(failingBody()), CountBodyFailures: true})
	resp, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.NoError(t, err)
	require.Equal(t, window.Counts{Successes: 1}, gate.Breaker().Counts(), "a success when the headers arrive")

	for range 3 {
		_, err = io.ReadAll(resp.Body)
		require.Equal(t, io.ErrUnexpectedEOF, err, "the error is not wrapped")
	}
	require.NoError(t, resp.Body.Close())
	require.Equal(t, window.Counts{Successes: 1, Failures: 1, ConsecutiveFailures: 1}, gate.Breaker().Counts())
}

func TestFailedBodyIsNotCountedByDefault(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	failing := failingBody()
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: respondWithBody(failing)})
	resp, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.NoError(t, err)
	require.Equal(t, failing, resp.Body, "not wrapped")
	_, err = io.ReadAll(resp.Body)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, window.Counts{Successes: 1}, gate.Breaker().Counts())
}

func TestFailedBodyCountsAsAFailedCall(t *testing.T) {
	for _, c := range []struct {
		state breaker.State
		want  int64
	}{
		{breaker.Closed, 1},
		{breaker.ForcedClosed, 1},
		{breaker.Shadow, 1},
		{breaker.ForcedOpen, 0},
		{breaker.Open, 0},
		{breaker.HalfOpen, 0},
	} {
		gate := weir.New("g", weir.Config{})
		transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: respondWithBody(failingBody()), CountBodyFailures: true})

		resp, err := transport.RoundTrip(newGet(t, "https://a.example/"))
		require.NoError(t, err)
		switch b := gate.Breaker(); c.state { //nolint:exhaustive // closed it is
		case breaker.Open:
			b.OpenFor(1 << 40)
		case breaker.HalfOpen:
			b.OpenFor(1)
		case breaker.ForcedOpen, breaker.ForcedClosed, breaker.Shadow:
			b.Force(c.state, "")
		}
		_, err = io.ReadAll(resp.Body)
		require.Error(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.want, gate.Totals().Failures, "%v", c.state)
		require.Equal(t, int64(1), gate.Totals().Successes, "%v", c.state)
		require.Zero(t, gate.Totals().Refused, "%v", c.state)
	}
}

func TestFailedBodiesOpenTheBreaker(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
		Base: baseFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: failingBody()}, nil
		}),
		CountBodyFailures: true,
	})

	for range 10 {
		resp, err := transport.RoundTrip(newGet(t, "https://a.example/"))
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.Error(t, err)
		require.NoError(t, resp.Body.Close())
	}
	_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.ErrorIs(t, err, breaker.ErrOpen, "half of the calls have failed")
}

func TestBodyClosedByTheCallerHasNotFailed(t *testing.T) {
	errClosed := errors.New("read on closed body")
	var ctx context.Context
	var cancel context.CancelFunc
	for name, use := range map[string]func(io.ReadCloser){
		"read to its end": func(b io.ReadCloser) { _, _ = io.ReadAll(io.LimitReader(b, 4)); _ = b.Close() },
		"closed":          func(b io.ReadCloser) { _ = b.Close(); _, _ = io.ReadAll(b) },
		"cancelled":       func(b io.ReadCloser) { cancel(); _, _ = io.ReadAll(b) },
	} {
		ctx, cancel = context.WithCancel(t.Context())
		gate := weir.New("g", weir.Config{})
		failing := io.NopCloser(io.MultiReader(strings.NewReader("some"), iotest.ErrReader(errClosed)))
		transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: respondWithBody(failing), CountBodyFailures: true})
		resp, err := transport.RoundTrip(newGet(t, "https://a.example/").WithContext(ctx))
		require.NoError(t, err)
		use(resp.Body)
		require.NoError(t, resp.Body.Close())
		require.Zero(t, gate.Totals().Failures, name)
		cancel()
	}
}

// upgradedConn is like the connection of a response with status 101, which can be written to.
type upgradedConn struct{ bytes.Buffer }

func (*upgradedConn) Close() error      { return nil }
func (*upgradedConn) CloseWrite() error { return nil }

func TestWritableBodyIsNotWrapped(t *testing.T) {
	connection := &upgradedConn{}
	transport := weirhttp.NewTransport(weirhttp.ForAll(weir.New("g", weir.Config{})), weirhttp.TransportConfig{Base: respondWithBody(connection), CountBodyFailures: true})
	resp, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Same(t, connection, resp.Body)
}

func TestMissingBodyIsNotWrapped(t *testing.T) {
	for _, none := range []io.ReadCloser{nil, http.NoBody} {
		transport := weirhttp.NewTransport(weirhttp.ForAll(weir.New("g", weir.Config{})), weirhttp.TransportConfig{Base: respondWithBody(none), CountBodyFailures: true})
		resp, err := transport.RoundTrip(newGet(t, "https://a.example/"))
		require.NoError(t, err)
		require.Equal(t, none, resp.Body)
	}
}
