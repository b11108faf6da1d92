package weirhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

var errDown = errors.New("connection refused")

// baseFunc is a function that is a base of a Transport.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// reply returns a response with headers made of pairs of names and values.
func reply(status int, pairs ...string) *http.Response {
	return &http.Response{StatusCode: status, Header: headers(pairs...), Body: io.NopCloser(strings.NewReader("body"))}
}

// always returns a base that responds with the status.
func always(status int, pairs ...string) http.RoundTripper {
	return baseFunc(func(*http.Request) (*http.Response, error) { return reply(status, pairs...), nil })
}

func newGet(t testing.TB, rawURL string) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rawURL, http.NoBody)
	require.NoError(t, err)
	return req
}

// trip sends a request that must be allowed, and reads the response.
func trip(t testing.TB, transport http.RoundTripper, rawURL string) {
	resp, err := transport.RoundTrip(newGet(t, rawURL))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// upload is a request's body that counts calls of Close.
type upload struct {
	io.Reader
	closed int
}

func (b *upload) Close() error {
	b.closed++
	return nil
}

func newPost(t testing.TB, rawURL string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, rawURL, body)
	require.NoError(t, err)
	return req
}

// headers returns a header made of pairs of names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// fragile returns a config of a gate that opens for a minute after one failure.
func fragile() weir.Config {
	return weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: time.Minute}}
}

func TestEachHostHasItsOwnGate(t *testing.T) {
	down := map[string]bool{"a.example": true}
	transport := weirhttp.NewTransport(perHost(fragile()), weirhttp.TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		if down[req.URL.Host] {
			return nil, errDown
		}
		return reply(http.StatusOK), nil
	})})

	_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.ErrorIs(t, err, errDown)
	for range 3 {
		_, err = transport.RoundTrip(newGet(t, "https://a.example/"))
		require.ErrorIs(t, err, breaker.ErrOpen)
		trip(t, transport, "https://b.example/")
	}
}

func TestErrorHasTheHostAndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: weirhttp.NewTransport(perHost(fragile()), weirhttp.TransportConfig{Base: always(500)})}
		get := func() error {
			resp, err := client.Do(newGet(t, "https://user:secret@API.example.com:443/path"))
			if err == nil {
				require.NoError(t, resp.Body.Close())
			}
			return err
		}
		require.NoError(t, get())
		time.Sleep(2500 * time.Millisecond)

		err := get()
		require.EqualError(t, err, `Get "https://user:***@API.example.com:443/path": weirhttp: api.example.com is not called for 57.5s: `+
			`breaker "http" for "api.example.com" is open until 00:01:00: 1 failures in a row, limit 1`)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.NotErrorIs(t, err, limiter.ErrLimited)
		require.Equal(t, 57500*time.Millisecond, weir.RetryAfter(err))

		refused, ok := errors.AsType[*weirhttp.RefusedError](err)
		require.True(t, ok)
		require.Equal(t, "api.example.com", refused.Host)
		_, ok = errors.AsType[*url.Error](err)
		require.True(t, ok)
	})
}

func TestErrorOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := weirhttp.NewTransport(perHost(weir.Config{Rate: limiter.PerMinute(1)}), weirhttp.TransportConfig{Base: always(200)})
		trip(t, transport, "https://a.example/")

		_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.Equal(t, time.Minute, weir.RetryAfter(err))
		require.ErrorContains(t, err, "weirhttp: a.example is not called for 1m0s: limiter ")
		trip(t, transport, "https://b.example/")
	})
}

func TestErrorOfAForcedOpenBreaker(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen)
	_, err := weirhttp.NewTransport(weirhttp.One(gate), weirhttp.TransportConfig{Base: always(200)}).RoundTrip(newGet(t, "https://a.example/"))
	require.EqualError(t, err, `weirhttp: a.example is not called: breaker "g" is forced open`)
}

func TestBodiesOfRefusedRequestsAreClosed(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen)
	transport := weirhttp.NewTransport(weirhttp.One(gate), weirhttp.TransportConfig{Base: always(200)})
	body := &upload{Reader: strings.NewReader("x")}

	_, err := transport.RoundTrip(newPost(t, "https://a.example/", body))
	require.ErrorIs(t, err, weir.ErrRefused)
	require.Equal(t, 1, body.closed)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = transport.RoundTrip(newPost(t, "https://a.example/", body).WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, weir.ErrRefused)
	require.Equal(t, 2, body.closed, "the body is closed even if the caller cancelled before")
}

func TestCallerWaitsForATokenOrCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := weirhttp.NewTransport(perHost(weir.Config{Rate: limiter.PerSecond(1), MaxWait: 10 * time.Second}), weirhttp.TransportConfig{Base: always(200)})
		start := time.Now()
		for range 3 {
			trip(t, transport, "https://a.example/")
		}
		require.Equal(t, 2*time.Second, time.Since(start))

		body := &upload{Reader: strings.NewReader("x")}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		_, err := transport.RoundTrip(newPost(t, "https://a.example/", body).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, body.closed)

		ctx, cancel = context.WithTimeout(t.Context(), time.Second/4)
		defer cancel()
		_, err = transport.RoundTrip(newGet(t, "https://a.example/").WithContext(ctx))
		require.ErrorIs(t, err, context.DeadlineExceeded, "a call does not wait for a token after its deadline")
		require.ErrorIs(t, err, weir.ErrRefused)
	})
}

func TestOnRefusalAndFallback(t *testing.T) {
	var refusals []string
	transport := weirhttp.NewTransport(perHost(fragile()), weirhttp.TransportConfig{
		Base: always(503),
		OnRefusal: func(req *http.Request, err *weirhttp.RefusedError) {
			refusals = append(refusals, req.Method+" "+err.Host)
		},
		Fallback: func(_ *http.Request, err error) (*http.Response, error) {
			if !errors.Is(err, breaker.ErrOpen) {
				return nil, err
			}
			return reply(http.StatusNonAuthoritativeInfo), nil
		},
	})

	client := &http.Client{Transport: transport}
	body := &upload{Reader: strings.NewReader("x")}
	for i, want := range []int{503, 203, 203} {
		body.closed = 0
		resp, err := client.Do(newPost(t, "https://a.example/", body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
		require.Equal(t, min(i, 1), body.closed, "the base of this test does not close it")
	}
	require.Equal(t, []string{"POST a.example", "POST a.example"}, refusals)
}

// If a fallback passes the request to another RoundTripper, that closes the body, and may read it
// after the response.
func TestFallbackMayPassTheBodyOn(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen)
	var handed io.ReadCloser
	mirror := baseFunc(func(req *http.Request) (*http.Response, error) {
		_, err := req.Body.Read(make([]byte, 1))
		handed = req.Body
		return reply(200), err
	})
	transport := weirhttp.NewTransport(weirhttp.One(gate), weirhttp.TransportConfig{
		Base:     always(200),
		Fallback: func(req *http.Request, _ error) (*http.Response, error) { return mirror.RoundTrip(req) },
	})

	body := &upload{Reader: strings.NewReader("xyz")}

	resp, err := transport.RoundTrip(newPost(t, "https://a.example/", body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Zero(t, body.closed)
	rest, err := io.ReadAll(handed)
	require.NoError(t, err)
	require.Equal(t, "yz", string(rest))
	require.NoError(t, handed.Close())
	require.Equal(t, 1, body.closed)
}

func TestPanicOfTheBaseIsAFailure(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.One(gate), weirhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) { panic("boom") })})
	require.PanicsWithValue(t, "boom", func() { _, _ = transport.RoundTrip(newGet(t, "https://a.example/")) })
	require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, gate.Breaker().Counts())
}

func TestRequestsWithoutAGateAreSent(t *testing.T) {
	payments := weir.New("payments", fragile())
	transport := weirhttp.NewTransport(func(r *http.Request) *weir.Gate {
		if r.URL.Host == "payments.example" {
			return payments
		}
		return nil
	}, weirhttp.TransportConfig{Base: always(500)})
	for range 3 {
		trip(t, transport, "https://elsewhere.example/")
	}
	trip(t, transport, "https://payments.example/")
	_, err := transport.RoundTrip(newGet(t, "https://payments.example/"))
	require.ErrorIs(t, err, breaker.ErrOpen)
}

func TestKeyOfAnyType(t *testing.T) {
	type key struct{ host, method string }
	group := weir.NewGroup[key]("by method", weir.GroupConfig{Gate: fragile()})
	transport := weirhttp.NewTransport(weirhttp.Per(group, func(req *http.Request) key {
		return key{weirhttp.ByHost(req), req.Method}
	}), weirhttp.TransportConfig{Base: always(500)})
	trip(t, transport, "https://a.example/")
	_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
	require.ErrorIs(t, err, breaker.ErrOpen)
	resp, err := transport.RoundTrip(newPost(t, "https://a.example/", strings.NewReader("x")))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// closer is a base with a method CloseIdleConnections.
type closer struct {
	http.RoundTripper
	closed bool
}

func (c *closer) CloseIdleConnections() { c.closed = true }

func TestCloseIdleConnections(t *testing.T) {
	base := &closer{RoundTripper: always(200)}
	client := &http.Client{Transport: weirhttp.NewTransport(perHost(weir.Config{}), weirhttp.TransportConfig{Base: base})}
	client.CloseIdleConnections()
	require.True(t, base.closed)

	weirhttp.NewTransport(perHost(weir.Config{}), weirhttp.TransportConfig{Base: always(200)}).CloseIdleConnections() // does nothing
}

func TestNewTransportNeedsAGateFunction(t *testing.T) {
	require.PanicsWithError(t, "weirhttp: NewTransport needs a gate function", func() { weirhttp.NewTransport(nil, weirhttp.TransportConfig{}) })
}

// A base that returns neither a response nor an error breaks the contract of RoundTripper, but
// causes no panic.
func TestBaseThatReturnsNothing(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	nothing := weirhttp.NewTransport(weirhttp.One(gate), weirhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) { return nil, nil })})
	resp, err := nothing.RoundTrip(newGet(t, "https://a.example/"))
	require.Nil(t, resp)
	require.NoError(t, err)
	require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, gate.Breaker().Counts())
}
