package weirhttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

var errDown = errors.New("connection refused")

// baseFunc is a function that is a base of a Transport.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// newResponse returns a response with headers made of pairs of names and values.
func newResponse(status int, pairs ...string) *http.Response {
	return &http.Response{StatusCode: status, Header: newHeader(pairs...), Body: io.NopCloser(strings.NewReader("body"))}
}

// alwaysRespond returns a base that responds with the status.
func alwaysRespond(status int, pairs ...string) http.RoundTripper {
	return baseFunc(func(*http.Request) (*http.Response, error) { return newResponse(status, pairs...), nil })
}

func newGet(t testing.TB, rawURL string) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rawURL, http.NoBody)
	require.NoError(t, err)
	return req
}

// sendAllowed sends a request that must be allowed, and reads the response.
func sendAllowed(t testing.TB, transport http.RoundTripper, rawURL string) {
	resp, err := transport.RoundTrip(newGet(t, rawURL))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// uploadBody is a request's body that counts calls of Close.
type uploadBody struct {
	io.Reader
	closed int
}

func (b *uploadBody) Close() error {
	b.closed++
	return nil
}

func newPost(t testing.TB, rawURL string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, rawURL, body)
	require.NoError(t, err)
	return req
}

// newHeader returns a header made of pairs of names and values.
func newHeader(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// opensAfterOneFailure returns a config of a gate that opens for a minute after one failure.
func opensAfterOneFailure() weir.Config {
	return weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: time.Minute}}
}
