package weirhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

// newUpload returns a request with a form whose file is stored in a temporary file.
func newUpload(t *testing.T, url string) *http.Request {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "x")
	require.NoError(t, err)
	_, err = file.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, &body)
	require.NoError(t, err)
	req.Header = newHeader("Content-Type", form.FormDataContentType(), "X-Forwarded-For", "203.0.113.9")
	return req
}

func parseForm(r *http.Request) {
	if err := r.ParseMultipartForm(1 << 10); err != nil {
		panic(err)
	}
}

// The server removes the temporary files of its own request, wherever the form is parsed, and
// whether or not the request is allowed.
func TestTemporaryFilesOfAnUploadAreRemoved(t *testing.T) {
	byForm := func(r *http.Request) string { parseForm(r); return "all" }
	for name, c := range map[string]struct {
		by     func(*http.Request) string
		quota  int
		answer func(http.ResponseWriter, *http.Request, weirhttp.Refusal)
		want   int
	}{
		"by the handler":                  {weirhttp.ByNothing, 100, nil, 200},
		"by the key":                      {byForm, 100, nil, 200},
		"by the key of a refused request": {byForm, 1, nil, 429},
		"by the answer": {weirhttp.ByNothing, 1, func(w http.ResponseWriter, r *http.Request, _ weirhttp.Refusal) {
			parseForm(r)
			w.WriteHeader(http.StatusTooManyRequests)
		}, 429},
	} {
		t.Run(name, func(t *testing.T) {
			overBothProtocols(t, func(t *testing.T, p protocol) {
				dir := t.TempDir()
				t.Setenv("TMPDIR", dir)
				limit := weirhttp.NewLimit(weirhttp.LimitConfig{
					Policies: []weirhttp.Policy{policyPerMinute(c.quota, c.by)}, Answer: c.answer,
					Proxies: weirhttp.Proxies{Trusted: parseNetworks("127.0.0.0/8")},
				})
				inner := weirhttp.NewLimit(weirhttp.LimitConfig{
					Policies: []weirhttp.Policy{policyPerMinute(100, weirhttp.ByIP)},
					Proxies:  weirhttp.Proxies{Trusted: parseNetworks("127.0.0.0/8"), Header: "X-Real-Ip"},
				})
				var created int
				server := serve(t, p, limit.Handler(inner.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					parseForm(r)
					if files, err := os.ReadDir(dir); err == nil {
						created = len(files)
					}
				}))).ServeHTTP)
				for i := range 3 {
					resp, err := server.Client().Do(newUpload(t, server.URL))
					_, err = bodyText(resp, err)
					require.NoError(t, err)
					if i > 0 {
						require.Equal(t, c.want, resp.StatusCode)
					}
				}
				require.Positive(t, created)
				server.Close()
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, files)
			})
		})
	}
}

// Middleware in front of the limit and the handler see what they would see without the limit.
func TestRequestIsTheSameWithProxies(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		var c weirhttp.LimitConfig
		if trusted {
			c.Proxies.Trusted = parseNetworks("127.0.0.0/8")
		}
		mux := http.NewServeMux()
		var client, trailer string
		mux.HandleFunc("POST /items/{id}/{rest...}", func(_ http.ResponseWriter, r *http.Request) {
			client = weirhttp.ByIP(r)
			if err := r.ParseForm(); err != nil {
				panic(err)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			trailer = r.Trailer.Get("X-Sum")
		})
		var seen string
		limited := weirhttp.NewLimit(c).Handler(mux)
		server := serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
			limited.ServeHTTP(w, r)
			seen = strings.Join([]string{r.Pattern, r.PathValue("id"), r.PathValue("rest"), r.Form.Get("q"), r.PostForm.Get("p")}, " ")
		})
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		// the trailer is not announced
		fmt.Fprint(conn, "POST /items/7/a/b?q=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.9\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n3\r\np=2\r\n0\r\nX-Sum: 5\r\n\r\n")
		_, err = io.ReadAll(conn)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		server.Close()
		require.Equal(t, map[bool]string{false: "127.0.0.1", true: "203.0.113.9"}[trusted], client)
		require.Equal(t, "POST /items/{id}/{rest...} 7 a/b 1 2", seen)
		require.Equal(t, "5", trailer)
	}
}

// A base or a fallback may get a copy of the request, but the response belongs to the request of
// the caller, or to one that the base has made.
func TestResponseHasTheRequestOfTheCaller(t *testing.T) {
	other := newGet(t, "http://other/")
	for name, answer := range map[string]func(*http.Request) *http.Request{
		"the same": func(r *http.Request) *http.Request { return r },
		"another":  func(*http.Request) *http.Request { return other },
	} {
		respond := func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: answer(r)}
		}
		for _, forced := range []breaker.State{"", breaker.ForcedOpen} {
			gate := weir.New("gate", weir.Config{Breaker: breaker.Config{Force: forced}})
			transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
				Base:     baseFunc(func(r *http.Request) (*http.Response, error) { return respond(r), nil }),
				Fallback: func(r *http.Request, _ error) (*http.Response, error) { return respond(r), nil },
			})
			for _, req := range []*http.Request{newGet(t, "http://host/"), newPost(t, "http://host/", io.MultiReader(strings.NewReader("x")))} {
				resp, err := transport.RoundTrip(req)
				require.NoError(t, err)
				resp.Body.Close()
				require.Same(t, answer(req), resp.Request, name)
			}
		}
	}
}
