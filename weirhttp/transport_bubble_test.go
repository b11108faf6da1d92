package weirhttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// memoryListener is a listener in memory. A goroutine that waits for a network is not durably
// blocked in a bubble.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (w *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *memoryListener) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (*memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "wire", Net: "unix"} }

func (w *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case w.conns <- far:
		return near, nil
	case <-w.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// inBubble runs the test in a bubble with a server, and with a base that connects to it for any
// host. The bubble would not end if a goroutine remained.
func inBubble(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, base http.RoundTripper)) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		synctest.Test(t, func(t *testing.T) {
			var protocols http.Protocols
			protocols.SetHTTP1(p == http1)
			protocols.SetUnencryptedHTTP2(p == http2)
			w := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
			server := &http.Server{Handler: handler, Protocols: &protocols, ReadHeaderTimeout: time.Hour}
			go func() { _ = server.Serve(w) }()
			defer func() { require.NoError(t, server.Close()) }()
			base := &http.Transport{DialContext: w.dial, Protocols: &protocols}
			defer base.CloseIdleConnections()

			test(t, base)
		})
	})
}

// A service is down for a minute and is called ten times a second.
func TestOutageOverARealStack(t *testing.T) {
	for _, c := range []struct {
		name       string
		retryAfter string
		least      int // the least number of calls that reach the service meanwhile
		most       int
		refusal    error
	}{
		// a run, and one probe per cooldown
		{"without a word", "", 12 + 52, 12 + 60, breaker.ErrOpen},
		{"saying when to come back", "45", 2, 2, limiter.ErrLimited},
	} {
		t.Run(c.name, func(t *testing.T) {
			var began time.Time
			var reached int
			inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
				if time.Since(began) < time.Minute {
					reached++
					if c.retryAfter != "" {
						w.Header().Set("Retry-After", c.retryAfter)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}, func(t *testing.T, base http.RoundTripper) {
				began, reached = time.Now(), 0
				client := &http.Client{Transport: weirhttp.NewTransport(gatePerHost(weir.Config{}), weirhttp.TransportConfig{Base: base})}
				var lastRefused time.Duration
				for range 2 * 60 * 10 {
					resp, err := client.Do(newGet(t, "http://a.example/"))
					if err != nil {
						require.ErrorIs(t, err, c.refusal)
						lastRefused = time.Since(began)
					} else {
						require.NoError(t, resp.Body.Close())
					}
					time.Sleep(100 * time.Millisecond)
				}
				require.GreaterOrEqual(t, reached, c.least)
				require.LessOrEqual(t, reached, c.most)
				require.Less(t, lastRefused, 100*time.Second, "it is called again soon after it has recovered")
			})
		})
	}
}

// More callers wait than there are tokens. Some cancel, some exceed their deadlines, and the
// service is called exactly at its rate.
func TestWaitingCallersOverARealStack(t *testing.T) {
	var served []time.Time
	var mu sync.Mutex
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		served = append(served, time.Now())
		mu.Unlock()
		_, _ = io.Copy(w, r.Body)
	}, func(t *testing.T, base http.RoundTripper) {
		served = nil
		gate := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: 2 * time.Second})
		client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: base})}
		var callers sync.WaitGroup
		for i := range 30 {
			callers.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%10 == 9 {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				_, _ = bodyText(client.Do(newPost(t, "http://a.example/", strings.NewReader("x")).WithContext(ctx)))
			})
		}
		callers.Wait()

		require.LessOrEqual(t, len(served), 21, "one at once, and one per 100ms for 2s")
		require.GreaterOrEqual(t, len(served), 21-3, "fewer only because some callers cancelled")
		for i, at := range served {
			require.Equal(t, time.Duration(i)*100*time.Millisecond, at.Sub(served[0]))
		}
		done := gate.Stats()
		require.Equal(t, int64(30), done.Allowed+done.Waited+done.Refused+done.Cancelled)
		require.Equal(t, int64(len(served)), gate.Breaker().Counts().Successes)
		require.Zero(t, gate.Breaker().Counts().Failures)
	})
}

// If a server asks clients to wait, the gate refuses calls although the breaker is closed.
func TestTooManyRequestsIsObeyedOverARealStack(t *testing.T) {
	var began time.Time
	var served []time.Duration
	inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
		served = append(served, time.Since(began))
		if len(served) == 1 {
			w.Header().Set("Ratelimit", `"minute";r=0;t=20`)
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, func(t *testing.T, base http.RoundTripper) {
		began, served = time.Now(), nil
		client := &http.Client{Transport: weirhttp.NewTransport(gatePerHost(weir.Config{Rate: limiter.PerSecond(1), MaxWait: time.Minute}), weirhttp.TransportConfig{Base: base})}
		for range 3 {
			_, err := bodyText(client.Do(newGet(t, "http://a.example/")))
			require.NoError(t, err)
		}
		require.Len(t, served, 3)
		require.GreaterOrEqual(t, served[1], 20*time.Second)
		require.Less(t, served[1], 22*time.Second, "the wait is stretched by up to a tenth")
		require.Equal(t, served[1]+time.Second, served[2])
	})
}
