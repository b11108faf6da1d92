package weirhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirhttp"
)

const attemptHeader = "X-Envoy-Attempt-Count"

func TestTheServiceIsToldTheNumberOfAnAttempt(t *testing.T) {
	gate := weirhttp.ForAll(weir.New("service", weir.Config{}))
	var got []string
	transport := weirhttp.NewTransport(gate, weirhttp.TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		got = req.Header[attemptHeader]
		return newResponse(http.StatusOK), nil
	})})
	for name, c := range map[string]struct {
		attempt int
		header  http.Header
		want    []string
	}{
		"a first call":       {0, http.Header{}, nil},
		"a retry":            {1, http.Header{}, []string{"2"}},
		"no header":          {2, nil, []string{"3"}},
		"a number by Envoy":  {2, http.Header{attemptHeader: {"7"}}, []string{"7"}},
		"a negative attempt": {-1, http.Header{}, nil},
	} {
		req := newGet(t, "http://service/")
		req = req.WithContext(weir.WithAttempt(req.Context(), c.attempt))
		req.Header = c.header
		before := c.header.Clone()
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err, name)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.want, got, name)
		require.Equal(t, before, req.Header, "a RoundTripper must not change the request")
	}
}

// The handler has a context of its own, so its calls are first calls.
func TestAServerPassesNoAttemptOn(t *testing.T) {
	attempt := -1
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { attempt = weir.Attempt(r.Context()) }))
	defer server.Close()
	client := http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(weir.New("service", weir.Config{})), weirhttp.TransportConfig{})}
	req, err := http.NewRequestWithContext(weir.WithAttempt(t.Context(), 2), http.MethodPost, server.URL, io.MultiReader(strings.NewReader("body")))
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Zero(t, attempt)
	require.Empty(t, resp.Request.Header)
}

func TestARetryBeyondTheBudgetIsRefused(t *testing.T) {
	group := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{RetryShare: 0.1, RetryBurst: 1}})
	var refused *weirhttp.RefusedError
	transport := weirhttp.NewTransport(weirhttp.Per(group, weirhttp.ByHost), weirhttp.TransportConfig{
		Base: alwaysRespond(http.StatusServiceUnavailable), OnRefusal: func(_ *http.Request, e *weirhttp.RefusedError) { refused = e },
	})
	for _, host := range []string{"http://a/", "http://b/"} {
		req := newGet(t, host)
		req = req.WithContext(weir.WithAttempt(req.Context(), 1))
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		_, err = transport.RoundTrip(req) //nolint:bodyclose // there is none
		e, ok := errors.AsType[*weir.RetryError](err)
		require.True(t, ok)
		require.Equal(t, "hosts", e.Name)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.Equal(t, err, error(refused))
	}
}

func TestAShedRefusesTheRetriesOfATransportFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flight := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 1, Queue: inflight.Queue{Target: time.Minute}})
		server := weirhttp.Shed(flight, weirhttp.ShedConfig{})(handlerTaking(time.Second))
		transport := weirhttp.NewTransport(weirhttp.ForAll(weir.New("api", weir.Config{})), weirhttp.TransportConfig{
			Base: baseFunc(func(req *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				server.ServeHTTP(w, req.WithContext(t.Context())) // which has no attempt
				return w.Result(), nil
			}),
		})
		send := func(attempt int) <-chan int {
			status, req := make(chan int, 1), newGet(t, "http://api/")
			go func() {
				resp, err := transport.RoundTrip(req.WithContext(weir.WithAttempt(req.Context(), attempt)))
				if err == nil {
					status <- resp.StatusCode
					_ = resp.Body.Close()
				}
			}()
			synctest.Wait()
			return status
		}
		ahead, retried, first := send(0), send(1), send(0)
		require.Equal(t, []int{200, 503, 200}, []int{<-ahead, <-retried, <-first})
	})
}
