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
	"testing/synctest"
	"time"

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
	hijacksOnly struct {
		bare
		http.Hijacker
	}
	timeoutLike struct { // that of http.TimeoutHandler
		bare
		http.Pusher
	}
	fakeConn struct {
		strings.Builder
		read int
		push []string
	}
)

func (*fakeConn) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errors.New("no") }

func (f *fakeConn) ReadFrom(io.Reader) (int64, error) {
	f.read++
	return 0, nil
}

func (f *fakeConn) Push(target string, _ *http.PushOptions) error {
	f.push = append(f.push, target)
	return nil
}

// "The ResponseWriter of the handler is an http.Flusher or http.Hijacker if the ResponseWriter of
// the server is one. It is always an http.Pusher and an io.ReaderFrom".
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
		{"hijacks", hijacksOnly{bare{rec}, conn}},
		{"HTTP/1.1", serverLike{hijacks{f, conn}, conn}},
		{"HTTP/2", http2Like{f, conn}},
		{"http.TimeoutHandler", timeoutLike{bare{rec}, conn}},
	} {
		t.Run(c.what, func(t *testing.T) {
			given := writerBehindGuard(breaker.New("b", breaker.Config{}), c.w)
			_, flushes := c.w.(http.Flusher)
			_, hijacks := c.w.(http.Hijacker)
			_, isFlusher := given.(http.Flusher)
			_, isHijacker := given.(http.Hijacker)
			require.Equal(t, [2]bool{flushes, hijacks}, [2]bool{isFlusher, isHijacker})
			require.Implements(t, (*http.Pusher)(nil), given)
			require.Implements(t, (*io.ReaderFrom)(nil), given)
			unwrapper, ok := given.(interface{ Unwrap() http.ResponseWriter })
			require.True(t, ok)
			require.Equal(t, c.w, unwrapper.Unwrap())
		})
	}
}

// writerBehindGuard returns the ResponseWriter that a handler gets.
func writerBehindGuard(b *breaker.Breaker, w http.ResponseWriter) (given http.ResponseWriter) {
	guard(b, weirhttp.GuardConfig{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { given = w })).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	return given
}

func TestResponseWriterOffersMoreThanTheServers(t *testing.T) {
	rec := httptest.NewRecorder()
	w := writerBehindGuard(breaker.New("b", breaker.Config{}), bare{rec})
	n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("text"))
	require.NoError(t, err)
	require.Equal(t, int64(4), n)
	require.Equal(t, "text", rec.Body.String())
	require.ErrorIs(t, w.(http.Pusher).Push("/style.css", nil), http.ErrNotSupported)
	require.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
	_, _, err = http.NewResponseController(w).Hijack()
	require.ErrorIs(t, err, http.ErrNotSupported)

	conn := &fakeConn{}
	w = writerBehindGuard(breaker.New("b", breaker.Config{}), serverLike{hijacks{flushes{bare{rec}, rec}, conn}, conn})
	_, err = io.Copy(struct{ io.Writer }{w}, strings.NewReader("x"))
	require.NoError(t, err)
	_, err = io.Copy(w, onlyReader{strings.NewReader("x")})
	require.NoError(t, err)
	require.Equal(t, 1, conn.read, "the ReadFrom of the server is used")
}

type onlyReader struct{ io.Reader }

// unwraps is the ResponseWriter of another middleware, of which an http.ResponseController finds
// that of the server.
type unwraps struct {
	bare
	inner http.ResponseWriter
}

func (u unwraps) Unwrap() http.ResponseWriter { return u.inner }

// A stream or an upgrade behind another middleware occupies no probe slot either.
func TestTheOutcomeIsKnownWhenAnInnerWriterFlushesOrHijacks(t *testing.T) {
	for name, use := range map[string]func(*http.ResponseController) error{
		"flush": (*http.ResponseController).Flush,
		"hijack": func(c *http.ResponseController) error {
			conn, _, err := c.Hijack()
			if err == nil {
				err = conn.Close()
			}
			return err
		},
		"deadline": func(c *http.ResponseController) error { return c.SetReadDeadline(time.Time{}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.New("b", breaker.Config{})
			var before, after int64
			ended := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				guard(b, weirhttp.GuardConfig{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, isHijacker := w.(http.Hijacker)
					before = b.Totals().Successes
					if err := use(http.NewResponseController(w)); err != nil || isHijacker {
						panic(err)
					}
					after = b.Totals().Successes
				})).ServeHTTP(unwraps{bare{w}, w}, r)
			}))
			client := server.Client()
			_, _ = bodyText(client.Do(newRequest(t, server.URL, nil)))
			<-ended
			client.CloseIdleConnections()
			server.Close()
			require.Zero(t, before)
			require.Equal(t, name != "deadline", after == 1)
			require.Equal(t, int64(1), b.Totals().Successes)
		})
	}
}

// The handler waits until its deadline, and then returns or writes a response, which is dropped.
func TestGuardInsideATimeoutHandler(t *testing.T) {
	for name, finish := range map[string]func(http.ResponseWriter){
		"returns": func(http.ResponseWriter) {},
		"writes": func(w http.ResponseWriter) {
			for { // until http.TimeoutHandler has answered
				if _, err := io.WriteString(w, "too late"); err != nil {
					return
				}
			}
		},
		"copies": func(w http.ResponseWriter) {
			for {
				if _, err := io.Copy(w, onlyReader{strings.NewReader("too late")}); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.New("b", breaker.Config{})
				pushes := false
				inner := guard(b, weirhttp.GuardConfig{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, pushes = w.(http.Pusher)
					<-r.Context().Done()
					finish(w)
				}))
				h := http.TimeoutHandler(inner, time.Second, "timeout")
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
				synctest.Wait() // until the handler has returned
				require.Equal(t, int64(1), b.Totals().Failures)
				require.True(t, pushes)
			})
		})
	}
}

func TestGuardAllowsPush(t *testing.T) {
	rec, conn := httptest.NewRecorder(), &fakeConn{}
	for _, w := range []http.ResponseWriter{http2Like{flushes{bare{rec}, rec}, conn}, timeoutLike{bare{rec}, conn}} {
		conn.push = nil
		given := writerBehindGuard(breaker.New("b", breaker.Config{}), w)
		require.NoError(t, given.(http.Pusher).Push("/style.css", nil))
		require.Equal(t, []string{"/style.css"}, conn.push)
	}
}
