package interop_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirhttp/otelweir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// protocol is a version of HTTP, as in Request.Proto.
type protocol string

const (
	http1 protocol = "HTTP/1.1"
	http2 protocol = "HTTP/2.0"
)

// server is a server on loopback that counts its connections.
type server struct {
	*httptest.Server
	connections atomic.Int64
}

func serve(t *testing.T, p protocol, handler http.Handler) *server {
	s := &server{Server: httptest.NewUnstartedServer(handler)}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.connections.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.connections.Add(-1)
		case http.StateActive, http.StateIdle:
		}
	}
	if s.EnableHTTP2 = p == http2; s.EnableHTTP2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// wrapOrder says which of weirhttp and otelhttp is the outer transport.
type wrapOrder string

const (
	otelOutside wrapOrder = "otelhttp outside"
	weirOutside wrapOrder = "weirhttp outside"
)

// tracedClient is a client with both, and the recorded spans.
type tracedClient struct {
	*http.Client
	weir   *weirhttp.Transport
	tracer *trace.TracerProvider
	spans  *tracetest.SpanRecorder
}

func newTracedClient(o wrapOrder, base http.RoundTripper, gate *weir.Gate) *tracedClient {
	return newTracedClientOf(o, weirhttp.TransportConfig{Base: base}, gate)
}

func newTracedClientOf(o wrapOrder, c weirhttp.TransportConfig, gate *weir.Gate) *tracedClient {
	s := &tracedClient{spans: tracetest.NewSpanRecorder()}
	s.tracer = trace.NewTracerProvider(trace.WithSpanProcessor(s.spans))
	otel := func(inner http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(inner, otelhttp.WithTracerProvider(s.tracer), otelhttp.WithPropagators(propagation.TraceContext{}))
	}
	c.OnRefusal = otelweir.RefusedCall
	if o == otelOutside {
		s.weir = weirhttp.NewTransport(weirhttp.ForAll(gate), c)
		s.Client = &http.Client{Transport: otel(s.weir)}
	} else {
		c.Base = otel(c.Base)
		s.weir = weirhttp.NewTransport(weirhttp.ForAll(gate), c)
		s.Client = &http.Client{Transport: s.weir}
	}
	return s
}

// sendInSpan sends a request in a span named call.
func (s *tracedClient) sendInSpan(t *testing.T, method, url string, body io.Reader) (*http.Response, error) {
	ctx, span := s.tracer.Tracer("test").Start(t.Context(), "call")
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	require.NoError(t, err)
	return s.Do(req)
}

// refused returns the attribute weir.refused of each span with the name.
func (s *tracedClient) refused(name string) (all []bool) {
	for _, span := range s.spans.Ended() {
		if span.Name() == name {
			set := attribute.NewSet(span.Attributes()...)
			v, _ := set.Value("weir.refused")
			all = append(all, v.AsBool())
		}
	}
	return all
}

func inBothOrders(t *testing.T, test func(*testing.T, protocol, wrapOrder)) {
	for _, p := range []protocol{http1, http2} {
		for _, o := range []wrapOrder{otelOutside, weirOutside} {
			t.Run(string(p)+" "+string(o), func(t *testing.T) { test(t, p, o) })
		}
	}
}

// bodyText reads the body of a response.
func bodyText(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	all, err := io.ReadAll(resp.Body)
	if err2 := resp.Body.Close(); err == nil {
		err = err2
	}
	return string(all), err
}
