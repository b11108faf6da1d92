package weirhttp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

// Optional methods of a ResponseWriter.
type (
	bare    struct{ http.ResponseWriter }
	flushes struct {
		bare
		http.Flusher
	}
	hijacks struct {
		flushes
		http.Hijacker
	}
	serverLike struct {
		hijacks
		io.ReaderFrom
	}
	http2Like struct {
		flushes
		http.Pusher
	}
	fakeConn struct{ strings.Builder }
)

func (*fakeConn) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errors.New("no") }

func (*fakeConn) ReadFrom(io.Reader) (int64, error) { return 0, nil }

func (*fakeConn) Push(string, *http.PushOptions) error { return nil }

func TestResponseWriterHasTheOptionalMethodsOfTheServers(t *testing.T) {
	rec, conn := httptest.NewRecorder(), &fakeConn{}
	f := flushes{bare{rec}, rec}
	for _, c := range []struct {
		what string
		w    http.ResponseWriter
	}{
		{"bare", bare{rec}},
		{"flushes", f},
		{"flushes and hijacks", hijacks{f, conn}},
		{"HTTP/1.1", serverLike{hijacks{f, conn}, conn}},
		{"HTTP/2", http2Like{f, conn}},
	} {
		t.Run(c.what, func(t *testing.T) {
			var given http.ResponseWriter
			h := guard(breaker.New("b", breaker.Config{}), weirhttp.GuardConfig{})
			h(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { given = w })).
				ServeHTTP(c.w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			require.Equal(t, writerInterfaces(c.w), writerInterfaces(given))
			unwrapper, ok := given.(interface{ Unwrap() http.ResponseWriter })
			require.True(t, ok)
			require.Equal(t, c.w, unwrapper.Unwrap())
		})
	}
}

func writerInterfaces(w http.ResponseWriter) (all [4]bool) {
	_, all[0] = w.(http.Flusher)
	_, all[1] = w.(http.Hijacker)
	_, all[2] = w.(io.ReaderFrom)
	_, all[3] = w.(http.Pusher)
	return all
}

func TestGuardAllowsPush(t *testing.T) {
	rec := httptest.NewRecorder()
	var err error
	h := guard(breaker.New("b", breaker.Config{}), weirhttp.GuardConfig{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		err = w.(http.Pusher).Push("/style.css", nil)
	}))
	h.ServeHTTP(http2Like{flushes{bare{rec}, rec}, writerWithoutPush{}}, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.ErrorIs(t, err, http.ErrNotSupported)
}

type writerWithoutPush struct{}

func (writerWithoutPush) Push(string, *http.PushOptions) error { return http.ErrNotSupported }
