package weirhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// allMiddleware is a handler with all middleware of the package.
type allMiddleware struct {
	flight  *inflight.Limiter
	limit   *weirhttp.Limit
	breaker *breaker.Breaker
	ended   chan struct{} // receives a value when a request has ended
}

func newGuards(policies ...weirhttp.Policy) *allMiddleware {
	return &allMiddleware{
		flight:  inflight.New(inflight.Config{Limit: 100, Name: "server"}),
		limit:   weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies, Proxies: weirhttp.Proxies{Trusted: parseNetworks("127.0.0.0/8")}}),
		breaker: breaker.New("handler", breaker.Config{}),
		ended:   make(chan struct{}, 100),
	}
}

func (g *allMiddleware) wrap(h http.HandlerFunc) http.HandlerFunc {
	shed := weirhttp.Shed(g.flight, weirhttp.ShedConfig{})
	all := shed(g.limit.Handler(guard(g.breaker, weirhttp.GuardConfig{})(h)))
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() { g.ended <- struct{}{} }()
		all.ServeHTTP(w, r)
	}
}

// wantIdle checks that no slot is held after n requests have ended.
func (g *allMiddleware) wantIdle(t *testing.T, n int) {
	for range n {
		<-g.ended
	}
	require.Zero(t, g.flight.InFlight())
}

func newRequest(t *testing.T, url string, header http.Header) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	if header != nil {
		r.Header = header
	}
	return r
}

func TestServerAllowsExactlyTheQuota(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		g := newGuards(weirhttp.Policy{Name: "hour", Rate: limiter.Per(25, time.Hour), Burst: 25, By: weirhttp.ByIP})
		server := serve(t, p, g.wrap(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") }))
		var codes [600]atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				for range 20 {
					resp, err := server.Client().Do(newRequest(t, server.URL, nil))
					if err != nil {
						continue // the sum below does not include it
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					codes[resp.StatusCode].Add(1)
				}
			})
		}
		all.Wait()
		require.Equal(t, []int64{25, 75}, []int64{codes[200].Load(), codes[429].Load()})
		g.wantIdle(t, 100)

		resp, err := server.Client().Do(newRequest(t, server.URL, nil))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, `"hour";q=25;w=3600`, resp.Header.Get("RateLimit-Policy"))
		require.Contains(t, resp.Header.Get("RateLimit"), `"hour";r=0;t=`)
		require.NotEmpty(t, resp.Header.Get("Retry-After"))
		require.Equal(t, int64(25), g.breaker.Totals().Calls(), "refused requests do not reach the handler")
	})
}

func TestForgedForwardedHeadersAreIgnored(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		g := newGuards(weirhttp.Policy{Name: "hour", Rate: limiter.Per(1, time.Hour), Burst: 1, By: weirhttp.ByIP})
		server := serve(t, p, g.wrap(func(http.ResponseWriter, *http.Request) {}))
		for i, c := range []struct {
			header http.Header
			want   int
		}{
			{http.Header{"X-Forwarded-For": {"192.0.2.7"}}, 200},
			{http.Header{"X-Forwarded-For": {"8.8.8.8, 192.0.2.7"}}, 429},
			{http.Header{"X-Forwarded-For": {"127.0.0.1", "1.1.1.1 , 192.0.2.7"}}, 429},
			{http.Header{"X-Forwarded-For": {"192.0.2.7"}, "Forwarded": {"for=1.1.1.1"}, "X-Real-Ip": {"2.2.2.2"}}, 429},
			{http.Header{"X-Forwarded-For": {strings.Repeat("8.8.8.8,", 100_000) + "192.0.2.7"}}, 429},
			{http.Header{"X-Forwarded-For": {strings.Repeat("127.0.0.1,", 90_000)}}, 200},
			{http.Header{"X-Forwarded-For": {strings.Repeat("x", 900_000)}}, 429},
			{http.Header{"Forwarded": {"for=1.1.1.1"}}, 429},
		} {
			resp, err := server.Client().Do(newRequest(t, server.URL, c.header))
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, c.want, resp.StatusCode, "request %d", i)
		}
	})
}

func TestKeysOfAMegabyte(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		g := newGuards(weirhttp.Policy{Name: "hour", Rate: limiter.Per(1, time.Hour), Burst: 1, By: byAPIKey})
		server := serve(t, p, g.wrap(func(http.ResponseWriter, *http.Request) {}))
		key := strings.Repeat("k", 900_000)
		for _, c := range []struct {
			key  string
			want int
		}{{key, 200}, {key + "x", 200}, {key, 429}} {
			resp, err := server.Client().Do(newRequest(t, server.URL, http.Header{"X-Api-Key": {c.key}}))
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, c.want, resp.StatusCode)
		}
		g.wantIdle(t, 3)
	})
}

func TestClientThatDisconnectsDuringAnUploadIsIgnored(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		g := newGuards()
		begun := make(chan struct{})
		server := serve(t, p, g.wrap(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				<-r.Context().Done()
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		ctx, leave := context.WithCancel(t.Context())
		body, upload := io.Pipe()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, body)
		require.NoError(t, err)
		go func() {
			fmt.Fprint(upload, "some of it")
			<-begun
			leave()
			// net/http may wait until its last read of the body returns
			_ = upload.CloseWithError(context.Canceled)
		}()
		_, err = server.Client().Do(r)
		require.ErrorIs(t, err, context.Canceled)
		g.wantIdle(t, 1)
		totals := g.breaker.Totals()
		require.Equal(t, [2]int64{0, 1}, [2]int64{totals.Calls(), totals.Ignored})
	})
}

func TestPanickingHandlerIsAFailureAndHoldsNothing(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		g := newGuards()
		server := serve(t, p, g.wrap(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/abort" {
				panic(http.ErrAbortHandler)
			}
			panic("oops")
		}))
		for _, path := range []string{"/abort", "/oops"} {
			_, err := server.Client().Do(newRequest(t, server.URL+path, nil))
			require.Error(t, err)
			g.wantIdle(t, 1)
		}
		require.Equal(t, int64(2), g.breaker.Totals().Failures)
	})
}

func TestStreamsAreJudgedAtTheFirstFlush(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		g := newGuards(weirhttp.Policy{Name: "hour", Rate: limiter.Per(9, time.Hour), Burst: 9, By: weirhttp.ByNothing})
		next := make(chan string)
		server := serve(t, p, g.wrap(func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			if rc.SetWriteDeadline(time.Now().Add(time.Hour)) != nil {
				panic("the deadline does not reach the connection")
			}
			for line := range next {
				fmt.Fprintln(w, line)
				if rc.Flush() != nil {
					panic("the flush does not reach the connection")
				}
			}
		}))
		go func() { next <- "one" }()
		resp, err := server.Client().Do(newRequest(t, server.URL, nil))
		require.NoError(t, err)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for _, want := range []string{"one", "two", "three"} {
			if want != "one" {
				next <- want
			}
			require.True(t, lines.Scan())
			require.Equal(t, want, lines.Text())
			require.Equal(t, int64(1), g.breaker.Totals().Successes)
			require.Equal(t, 1, g.flight.InFlight())
		}
		close(next)
		require.False(t, lines.Scan())
		require.NoError(t, lines.Err())
		g.wantIdle(t, 1)
		require.Equal(t, int64(1), g.breaker.Totals().Calls())
	})
}

func TestHijackedConnections(t *testing.T) {
	g := newGuards(weirhttp.Policy{Name: "hour", Rate: limiter.Per(9, time.Hour), Burst: 9, By: weirhttp.ByNothing})
	server := serve(t, http1, g.wrap(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
	}))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	answers := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	for _, word := range []string{"hello\n", "there\n"} {
		fmt.Fprint(conn, word)
		echo, err := answers.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, word, echo)
	}
	require.Equal(t, int64(1), g.breaker.Totals().Successes, "a success when the connection was taken over")
	conn.Close()
	g.wantIdle(t, 1)
	require.Equal(t, int64(1), g.breaker.Totals().Calls())
}

func TestFileServerBehindAGuard(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := strings.Repeat("0123456789", 100_000)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	overBothProtocols(t, func(t *testing.T, p protocol) {
		g := newGuards()
		server := serve(t, p, g.wrap(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }))
		got, err := bodyText(server.Client().Do(newRequest(t, server.URL, nil)))
		require.NoError(t, err)
		require.Equal(t, content, got)
		resp, err := server.Client().Do(newRequest(t, server.URL, http.Header{"Range": {"bytes=5-9"}}))
		part, err := bodyText(resp, err)
		require.NoError(t, err)
		require.Equal(t, "56789", part)
		require.Equal(t, http.StatusPartialContent, resp.StatusCode)
		g.wantIdle(t, 2)
		require.Equal(t, int64(2), g.breaker.Totals().Successes)
	})
}
