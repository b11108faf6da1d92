package interop_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirhttp/otelweir"
	"github.com/weir-go/weir/window"
)

func TestRefusalIsRecordedOnASpan(t *testing.T) {
	inBothOrders(t, func(t *testing.T, p protocol, o wrapOrder) {
		s := serve(t, p, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
		gate := weir.New("shop", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 2, Cooldown: time.Hour}})
		client := newTracedClient(o, s.Client().Transport, gate)
		for i := range 4 {
			_, err := bodyText(client.sendInSpan(t, http.MethodGet, s.URL, http.NoBody))
			if i < 2 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, breaker.ErrOpen)
				require.InDelta(t, time.Hour, weir.RetryAfter(err), float64(time.Minute))
			}
		}
		if o == otelOutside {
			require.Equal(t, []bool{false, false, true, true}, client.refused("HTTP GET"), "the client's spans")
			require.Equal(t, []bool{false, false, false, false}, client.refused("call"))
			last := client.spans.Ended()[len(client.spans.Ended())-2]
			require.Equal(t, codes.Error, last.Status().Code, "otelhttp gets the error as well")
			require.Contains(t, last.Status().Description, "is not called for")
		} else {
			require.Equal(t, []bool{false, false}, client.refused("HTTP GET"), "no span for a request that was not sent")
			require.Equal(t, []bool{false, false, true, true}, client.refused("call"), "the caller's")
		}
		require.Equal(t, int64(2), gate.Totals().Failures)
	})
}

func TestTraceContextAndBodiesPassThrough(t *testing.T) {
	inBothOrders(t, func(t *testing.T, p protocol, o wrapOrder) {
		s := serve(t, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/there" {
				http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
				return
			}
			fmt.Fprintf(w, "%s %t ", r.Proto, r.Header.Get("Traceparent") != "")
			_, _ = io.Copy(w, r.Body)
		}))
		gate := weir.New("shop", weir.Config{})
		client := newTracedClientOf(o, weirhttp.TransportConfig{Base: s.Client().Transport, CountBodyFailures: true}, gate)
		got, err := bodyText(client.sendInSpan(t, http.MethodPost, s.URL, strings.NewReader("sent twice")))
		require.NoError(t, err)
		require.Equal(t, string(p)+" true sent twice", got)

		got, err = bodyText(client.sendInSpan(t, http.MethodPost, s.URL+"/there", io.MultiReader(strings.NewReader("streamed"))))
		require.NoError(t, err)
		require.Equal(t, string(p)+" true streamed", got)
		require.Equal(t, window.Counts{Successes: 3}, gate.Breaker().Counts())
	})
}

func TestBrokenBodyIsNoticed(t *testing.T) {
	inBothOrders(t, func(t *testing.T, p protocol, o wrapOrder) {
		s := serve(t, p, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "some")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}))
		gate := weir.New("shop", weir.Config{})
		client := newTracedClientOf(o, weirhttp.TransportConfig{Base: s.Client().Transport, CountBodyFailures: true}, gate)
		_, err := bodyText(client.sendInSpan(t, http.MethodGet, s.URL, http.NoBody))
		require.Error(t, err)
		require.Equal(t, int64(1), gate.Totals().Failures)
	})
}

func TestUpgradedConnectionIsWritable(t *testing.T) {
	for _, o := range []wrapOrder{otelOutside, weirOutside} {
		s := serve(t, http1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
			if conn, rw, err := w.(http.Hijacker).Hijack(); err == nil {
				line, _ := rw.ReadString('\n')
				_, _ = conn.Write([]byte(line))
				_ = conn.Close()
			}
		}))
		gate := weir.New("shop", weir.Config{})
		client := newTracedClientOf(o, weirhttp.TransportConfig{Base: s.Client().Transport, CountBodyFailures: true}, gate)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := client.Do(req)
		require.NoError(t, err)
		connection, ok := resp.Body.(io.ReadWriteCloser)
		require.True(t, ok, "%s: %T", o, resp.Body)
		_, err = io.WriteString(connection, "hello\n")
		require.NoError(t, err)
		line, err := io.ReadAll(connection)
		require.NoError(t, err)
		require.Equal(t, "hello\n", string(line), o)
		require.NoError(t, connection.Close())
		require.Zero(t, gate.Totals().Failures)
	}
}

func TestServerRefusalIsRecordedOnItsSpan(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{
		Policies:  []weirhttp.Policy{{Name: "minute", Rate: limiter.Per(1, time.Minute), Burst: 1, By: weirhttp.ByIP}},
		OnRefusal: otelweir.RefusedRequest,
	})
	s := serve(t, http1, otelhttp.NewHandler(limit.Handler(http.NotFoundHandler()), "serve",
		otelhttp.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))))
	client := newTracedClient(weirOutside, s.Client().Transport, weir.New("shop", weir.Config{}))
	for range 2 {
		_, err := bodyText(client.sendInSpan(t, http.MethodGet, s.URL, http.NoBody))
		require.NoError(t, err)
	}
	s.Close() // the spans have ended
	require.Equal(t, []bool{false, true}, (&tracedClient{spans: spans}).refused(spans.Ended()[0].Name()))
}
