package weirhttp_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

// protocol is a version of HTTP, as in http.Request.Proto.
type protocol string

const (
	http1 protocol = "HTTP/1.1"
	http2 protocol = "HTTP/2.0"
)

// serve starts a server on loopback. Its Client uses the protocol.
func serve(t *testing.T, p protocol, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs unused connections
	if p == http2 {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close) // blocks until no connection is in use
	return server
}

// newGuardedClient returns a client of the server with one gate.
func newGuardedClient(server *httptest.Server, gate *weir.Gate) (*http.Client, *weirhttp.Transport) {
	return newClientOf(gate, weirhttp.TransportConfig{Base: server.Client().Transport})
}

func newClientOf(gate *weir.Gate, c weirhttp.TransportConfig) (*http.Client, *weirhttp.Transport) {
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), c)
	return &http.Client{Transport: transport}, transport
}

func overBothProtocols(t *testing.T, test func(*testing.T, protocol)) {
	for _, p := range []protocol{http1, http2} {
		t.Run(string(p), func(t *testing.T) { test(t, p) })
	}
}

func TestFailingServerIsNotCalledUntilItRecovers(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		var calls atomic.Int64
		var down atomic.Bool
		server := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			if down.Load() {
				w.WriteHeader(http.StatusBadGateway)
			}
			fmt.Fprint(w, r.Proto)
		})
		gate := weir.New("server", weir.Config{Breaker: breaker.Config{FailureRun: breaker.Off, Recovery: breaker.Off, Cooldown: time.Hour}})
		client, _ := newGuardedClient(server, gate)
		down.Store(true)

		var refused atomic.Int64
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 50 {
					if _, err := bodyText(client.Do(newGet(t, server.URL))); err != nil {
						refused.Add(1)
					}
				}
			})
		}
		callers.Wait()
		require.Equal(t, int64(8*50), calls.Load()+refused.Load(), "each call is sent or refused")
		require.InDelta(t, 24, calls.Load(), 4, "20 calls, and those in flight when the breaker opened")

		down.Store(false)
		gate.Breaker().OpenFor(time.Nanosecond) // ends the cooldown
		for range 3 {
			text, err := bodyText(client.Do(newGet(t, server.URL)))
			require.NoError(t, err)
			require.Equal(t, string(p), text)
		}
		require.Equal(t, breaker.Closed, gate.Breaker().State())
	})
}

// bodyText returns the body of a response.
func bodyText(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	if err2 := resp.Body.Close(); err == nil {
		err = err2
	}
	return string(text), err
}

// More streams are open at once than there are probe slots.
func TestStreamsOccupyNoProbeSlot(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		end := make(chan struct{})
		server := serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "first")
			w.(http.Flusher).Flush()
			<-end
			fmt.Fprintln(w, "last")
		})
		gate := weir.New("server", weir.Config{Breaker: breaker.Config{Recovery: breaker.Off, Probes: 1, ProbeTimeout: time.Hour}})
		gate.Breaker().OpenFor(time.Nanosecond)
		client, _ := newClientOf(gate, weirhttp.TransportConfig{Base: server.Client().Transport, CountBodyFailures: true})

		var streams []*http.Response
		for range 5 {
			resp, err := client.Do(newGet(t, server.URL))
			require.NoError(t, err)
			streams = append(streams, resp)
		}
		require.Equal(t, breaker.Closed, gate.Breaker().State())
		close(end)
		for _, s := range streams {
			text, err := bodyText(s, nil)
			require.NoError(t, err)
			require.Equal(t, "first\nlast\n", text)
		}
		require.Zero(t, gate.Totals().Failures)
	})
}

func TestAbortedDownloadIsCounted(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		server := serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "some")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		gate := weir.New("server", weir.Config{})
		client, _ := newClientOf(gate, weirhttp.TransportConfig{Base: server.Client().Transport, CountBodyFailures: true})
		text, err := bodyText(client.Do(newGet(t, server.URL)))
		require.Error(t, err)
		require.Equal(t, "some", text)
		require.Equal(t, window.Counts{Successes: 1, Failures: 1, ConsecutiveFailures: 1}, gate.Breaker().Counts())
	})
}

func TestCorruptCompressedDownloadIsCounted(t *testing.T) {
	server := serve(t, http1, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, "some")
		_ = z.Flush() // without Close
	})
	gate := weir.New("server", weir.Config{})
	client, _ := newClientOf(gate, weirhttp.TransportConfig{Base: server.Client().Transport, CountBodyFailures: true})
	_, err := bodyText(client.Do(newGet(t, server.URL)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, int64(1), gate.Totals().Failures)
}

func TestCancelledCallIsIgnored(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		began := make(chan struct{}, 1)
		server := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stream" {
				fmt.Fprint(w, "some")
				w.(http.Flusher).Flush()
			}
			began <- struct{}{}
			<-r.Context().Done()
		})
		gate := weir.New("server", weir.Config{})
		client, _ := newClientOf(gate, weirhttp.TransportConfig{Base: server.Client().Transport, CountBodyFailures: true})

		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-began; cancel() }()
		_, err := client.Do(newGet(t, server.URL).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, window.Counts{Ignored: 1}, gate.Breaker().Counts())

		ctx, cancel = context.WithCancel(t.Context())
		resp, err := client.Do(newGet(t, server.URL+"/stream").WithContext(ctx))
		require.NoError(t, err)
		<-began
		cancel()
		_, err = bodyText(resp, nil)
		require.ErrorIs(t, err, context.Canceled)

		resp, err = client.Do(newGet(t, server.URL+"/stream"))
		require.NoError(t, err)
		<-began
		require.NoError(t, resp.Body.Close(), "closing the body without reading it")
		require.Equal(t, window.Counts{Successes: 2, Ignored: 1}, gate.Breaker().Counts())
	})
}

func TestDeadlineIsAFailure(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		server := serve(t, p, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		gate := weir.New("server", weir.Config{})
		client, _ := newGuardedClient(server, gate)
		client.Timeout = 20 * time.Millisecond
		_, err := client.Do(newGet(t, server.URL))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, gate.Breaker().Counts())
	})
}

func TestUpgradedConnectionIsNotWrapped(t *testing.T) {
	server := serve(t, http1, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err == nil {
			line, _ := rw.ReadString('\n')
			_, _ = rw.WriteString("echo " + line)
			_ = rw.Flush()
			_ = conn.Close()
		}
	})
	gate := weir.New("server", weir.Config{})
	client, _ := newClientOf(gate, weirhttp.TransportConfig{Base: server.Client().Transport, CountBodyFailures: true})
	req := newGet(t, server.URL)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")

	resp, err := client.Do(req)
	require.NoError(t, err)
	connection, ok := resp.Body.(io.ReadWriteCloser)
	require.True(t, ok, "%T", resp.Body)
	_, err = io.WriteString(connection, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(connection).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "echo hello\n", line)
	require.NoError(t, connection.Close())
	require.Equal(t, window.Counts{Successes: 1}, gate.Breaker().Counts())
}

func TestRedirectsUseTheGateOfEachHost(t *testing.T) {
	target := serve(t, http1, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	first := serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL+"/there", http.StatusFound)
	})
	group := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: opensAfterOneFailure()})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(group, weirhttp.ByHost), weirhttp.TransportConfig{})}
	defer client.CloseIdleConnections()

	_, err := bodyText(client.Do(newGet(t, first.URL)))
	require.NoError(t, err)
	_, err = bodyText(client.Do(newGet(t, first.URL)))
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.ErrorContains(t, err, strings.TrimPrefix(target.URL, "http://"))
	require.False(t, group.Get(strings.TrimPrefix(first.URL, "http://")).Tripped())
}
