package weirhttp_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

func TestClientTraceWorks(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		server := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.Copy(io.Discard, r.Body)
		})
		client, _ := newGuardedClient(server, weir.New("server", weir.Config{}))
		// in any order: HTTP/2 may report the response before the request
		seen := make(chan string, 3)
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn:              func(httptrace.GotConnInfo) { seen <- "connection" },
			WroteRequest:         func(httptrace.WroteRequestInfo) { seen <- "request" },
			GotFirstResponseByte: func() { seen <- "response" },
		})
		_, err := bodyText(client.Do(newPost(t, server.URL, io.MultiReader(strings.NewReader("x"))).WithContext(ctx)))
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"connection", "request", "response"}, []string{<-seen, <-seen, <-seen})
	})
}

// A server may send any headers, as long as net/http allows.
func TestHeadersOfAMegabyte(t *testing.T) {
	overBothProtocols(t, func(t *testing.T, p protocol) {
		var header atomic.Pointer[http.Header]
		server := serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), *header.Load())
			w.WriteHeader(http.StatusTooManyRequests)
		})
		gate := weir.New("server", weir.Config{Rate: limiter.PerSecond(1000)})
		client, _ := newGuardedClient(server, gate)
		for name, value := range map[string]string{
			"Retry-After":       strings.Repeat("9", 1<<20),
			"Ratelimit":         strings.Repeat(`"a";r=0;t=9,`, 80_000),
			"X-Ratelimit-Reset": strings.Repeat("1700000000", 100_000),
			"X-Anything":        strings.Repeat("x", 1<<20),
		} {
			header.Store(&http.Header{name: {value}})
			_, err := bodyText(client.Do(newGet(t, server.URL)))
			require.NoError(t, err, "%s: the gate must not be held", name)
		}
	})
}
