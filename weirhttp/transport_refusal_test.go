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
)

func TestErrorHasTheHostAndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: weirhttp.NewTransport(gatePerHost(opensAfterOneFailure()), weirhttp.TransportConfig{Base: alwaysRespond(500)})}
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
		transport := weirhttp.NewTransport(gatePerHost(weir.Config{Rate: limiter.PerMinute(1)}), weirhttp.TransportConfig{Base: alwaysRespond(200)})
		sendAllowed(t, transport, "https://a.example/")

		_, err := transport.RoundTrip(newGet(t, "https://a.example/"))
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.Equal(t, time.Minute, weir.RetryAfter(err))
		require.ErrorContains(t, err, "weirhttp: a.example is not called for 1m0s: limiter ")
		sendAllowed(t, transport, "https://b.example/")
	})
}

func TestErrorOfAForcedOpenBreaker(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	_, err := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: alwaysRespond(200)}).RoundTrip(newGet(t, "https://a.example/"))
	require.EqualError(t, err, `weirhttp: a.example is not called: breaker "g" is forced open`)
}

func TestBodiesOfRefusedRequestsAreClosed(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: alwaysRespond(200)})
	body := &uploadBody{Reader: strings.NewReader("x")}

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
		transport := weirhttp.NewTransport(gatePerHost(weir.Config{Rate: limiter.PerSecond(1), MaxWait: 10 * time.Second}), weirhttp.TransportConfig{Base: alwaysRespond(200)})
		start := time.Now()
		for range 3 {
			sendAllowed(t, transport, "https://a.example/")
		}
		require.Equal(t, 2*time.Second, time.Since(start))

		body := &uploadBody{Reader: strings.NewReader("x")}
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
	transport := weirhttp.NewTransport(gatePerHost(opensAfterOneFailure()), weirhttp.TransportConfig{
		Base: alwaysRespond(503),
		OnRefusal: func(req *http.Request, err *weirhttp.RefusedError) {
			refusals = append(refusals, req.Method+" "+err.Host)
		},
		Fallback: func(_ *http.Request, err error) (*http.Response, error) {
			if !errors.Is(err, breaker.ErrOpen) {
				return nil, err
			}
			return newResponse(http.StatusNonAuthoritativeInfo), nil
		},
	})

	client := &http.Client{Transport: transport}
	body := &uploadBody{Reader: strings.NewReader("x")}
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

// If a fallback passes the request to another RoundTripper, the other RoundTripper closes the body,
// and may read the body after the response.
func TestFallbackMayPassTheBodyOn(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	var handed io.ReadCloser
	mirror := baseFunc(func(req *http.Request) (*http.Response, error) {
		_, err := req.Body.Read(make([]byte, 1))
		handed = req.Body
		return newResponse(200), err
	})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
		Base:     alwaysRespond(200),
		Fallback: func(req *http.Request, _ error) (*http.Response, error) { return mirror.RoundTrip(req) },
	})

	body := &uploadBody{Reader: strings.NewReader("xyz")}

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
