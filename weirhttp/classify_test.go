package weirhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

func TestDefaultClassify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes after the deadline
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		late, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		<-late.Done()
		for _, c := range resultsByDefault(cancelled, late) {
			require.Equal(t, c.want, outcomeOf(c.ctx, t, errorOrStatus(c.err, c.status), c.err), c.name)
		}
	})
}

type result struct {
	name   string
	ctx    context.Context
	status int
	err    error
	want   breaker.Outcome
}

// resultsByDefault returns results with their outcomes. The contexts have ended.
func resultsByDefault(cancelled, late context.Context) []result {
	return []result{
		{"200", nil, 200, nil, breaker.Success},
		{"101", nil, 101, nil, breaker.Success},
		{"302", nil, 302, nil, breaker.Success},
		{"400", nil, 400, nil, breaker.Success},
		{"404", nil, 404, nil, breaker.Success},
		{"408", nil, 408, nil, breaker.Success},
		{"429", nil, 429, nil, breaker.Failure},
		{"499", nil, 499, nil, breaker.Success},
		{"500", nil, 500, nil, breaker.Failure},
		{"503", nil, 503, nil, breaker.Failure},
		{"599", nil, 599, nil, breaker.Failure},
		{"network", nil, 0, errDown, breaker.Failure},
		{"end of file", nil, 0, io.ErrUnexpectedEOF, breaker.Failure},
		{"refused further in", nil, 0, fmt.Errorf("inner: %w", weir.ErrRefused), breaker.Ignored},
		{"cancelled by the caller", cancelled, 0, context.Canceled, breaker.Ignored},
		{"cancelled by the caller, as HTTP/2 may word it", cancelled, 0, errors.New("stream error: stream ID 1; CANCEL"), breaker.Ignored},
		{"cancelled, but not by the caller", nil, 0, context.Canceled, breaker.Failure},
		{"answered before it was cancelled", cancelled, 200, nil, breaker.Success},
		{"deadline of the caller", late, 0, context.DeadlineExceeded, breaker.Failure},
	}
}

// outcomeOf sends a request and returns the outcome that the gate counts. If ctx is not nil, it
// becomes the context of the request during the call, and may have ended.
func outcomeOf(ctx context.Context, t *testing.T, base http.RoundTripper, wantErr error) breaker.Outcome {
	gate := weir.New("g", weir.Config{})
	req := newGet(t, "https://a.example/")
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: baseFunc(func(*http.Request) (*http.Response, error) {
		if ctx != nil {
			*req = *req.WithContext(ctx)
		}
		return base.RoundTrip(req)
	})})
	resp, err := transport.RoundTrip(req)
	require.ErrorIs(t, err, wantErr)
	if err == nil {
		require.NoError(t, resp.Body.Close())
	}
	return onlyOutcome(gate)
}

// errorOrStatus returns a base that responds with the status, or returns err if that is not nil.
func errorOrStatus(err error, status int) http.RoundTripper {
	return baseFunc(func(*http.Request) (*http.Response, error) {
		if err != nil {
			return nil, err
		}
		return newResponse(status), nil
	})
}

// onlyOutcome returns the outcome of the only call of the gate.
func onlyOutcome(gate *weir.Gate) breaker.Outcome {
	switch n := gate.Breaker().Counts(); {
	case n.Successes == 1 && n.Failures+n.Ignored == 0:
		return breaker.Success
	case n.Failures == 1 && n.Successes+n.Ignored == 0:
		return breaker.Failure
	case n.Ignored == 1 && n.Successes+n.Failures == 0:
		return breaker.Ignored
	}
	return 255
}

func TestClassify(t *testing.T) {
	classify := func(resp *http.Response, err error) breaker.Outcome {
		if resp != nil && resp.StatusCode == http.StatusNotImplemented {
			return breaker.Success
		}
		return weirhttp.DefaultClassify(resp, err)
	}
	for _, c := range []struct {
		status int
		err    error
		want   breaker.Outcome
	}{
		{501, nil, breaker.Success},
		{500, nil, breaker.Failure},
		{429, nil, breaker.Failure},
		{404, nil, breaker.Success},
		{0, errDown, breaker.Failure},
		{0, weir.ErrRefused, breaker.Ignored},
	} {
		gate := weir.New("g", weir.Config{})
		transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: errorOrStatus(c.err, c.status), Classify: classify})

		resp, err := transport.RoundTrip(newGet(t, "https://a.example/"))
		require.ErrorIs(t, err, c.err)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, c.want, onlyOutcome(gate), "%d %v", c.status, c.err)
	}
}

func TestErrorsAreClassifiedByTheBreaker(t *testing.T) {
	gate := weir.New("g", weir.Config{Breaker: breaker.Config{Classify: breaker.Ignore(errDown)}})
	_, err := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: errorOrStatus(errDown, 0)}).RoundTrip(newGet(t, "https://a.example/"))
	require.ErrorIs(t, err, errDown)
	require.Equal(t, breaker.Ignored, onlyOutcome(gate))
}

func TestPanickingClassifyIgnoresTheCall(t *testing.T) {
	gate := weir.New("g", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
		Base:     alwaysRespond(200),
		Classify: func(*http.Response, error) breaker.Outcome { panic("boom") },
	})

	require.PanicsWithValue(t, "boom", func() { _, _ = transport.RoundTrip(newGet(t, "https://a.example/")) })
	require.Equal(t, breaker.Ignored, onlyOutcome(gate))
}

// A request that net/http refuses to send is not a failure of the host. Otherwise a user who can
// choose a header could open the breaker for all users.
func TestInvalidRequestIsNotAFailure(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"no URL":                 func(r *http.Request) { r.URL = nil },
		"no host":                func(r *http.Request) { r.URL.Host = "" },
		"no header":              func(r *http.Request) { r.Header = nil },
		"a method with a space":  func(r *http.Request) { r.Method = "GET /" },
		"a header that injects":  func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nb: c"} },
		"a zero in a header":     func(r *http.Request) { r.Header["X-A"] = []string{"\x00"} },
		"DEL in a header":        func(r *http.Request) { r.Header["X-A"] = []string{"\x7f"} },
		"a header without name":  func(r *http.Request) { r.Header[""] = []string{"a"} },
		"a header's name":        func(r *http.Request) { r.Header["X A"] = []string{"a"} },
		"a trailer that injects": func(r *http.Request) { r.Trailer = http.Header{"X-A": {"a\nb"}} },
	} {
		gate := weir.New("g", weir.Config{})
		req := newGet(t, "http://127.0.0.1:1/")
		spoil(req)
		_, err := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{}).RoundTrip(req)
		require.Error(t, err, name)
		require.Equal(t, breaker.Ignored, onlyOutcome(gate), "%s: %v", name, err)
	}

	gate := weir.New("g", weir.Config{})
	req := newGet(t, "http://127.0.0.1:1/")
	req.Header.Set("X-A", "tab\tand \xffbytes are fine")
	_, err := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{}).RoundTrip(req)
	require.Error(t, err)
	require.Equal(t, breaker.Failure, onlyOutcome(gate), "no server listens there: %v", err)
}

func TestUnsupportedSchemeHasItsOwnGate(t *testing.T) {
	transport := weirhttp.NewTransport(gatePerHost(opensAfterOneFailure()), weirhttp.TransportConfig{})
	for range 2 {
		_, err := transport.RoundTrip(newGet(t, "ftp://127.0.0.1:1/"))
		require.Error(t, err)
	}
	_, err := transport.RoundTrip(newGet(t, "http://127.0.0.1:1/"))
	require.Error(t, err)
	require.NotErrorIs(t, err, weir.ErrRefused)
}

var errUpload = errors.New("client went away")

// An upload that fails because a proxy's client disconnects is not a failure of the server.
func TestUnreadableUploadIsNotAFailure(t *testing.T) {
	server := serve(t, http1, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})
	gate := weir.New("g", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: server.Client().Transport})
	body := io.MultiReader(strings.NewReader("some"), iotest.ErrReader(errUpload))

	_, err := transport.RoundTrip(newPost(t, server.URL, body))
	require.ErrorIs(t, err, errUpload)
	require.Equal(t, breaker.Ignored, onlyOutcome(gate))

	req := newPost(t, server.URL, io.MultiReader(strings.NewReader("all of it")))
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.Same(t, req, resp.Request)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, int64(1), gate.Breaker().Counts().Successes)
}

// The server never gets the whole of a request that ends too early.
func TestUploadShorterThanItsLengthIsNotAFailure(t *testing.T) {
	server := serve(t, http1, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})
	gate := weir.New("g", weir.Config{})
	req := newPost(t, server.URL, io.MultiReader(strings.NewReader("some")))
	req.ContentLength = 10
	_, err := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: server.Client().Transport}).RoundTrip(req)
	// about the length, or about the connection that net/http closes concurrently
	require.Error(t, err)
	require.Equal(t, breaker.Ignored, onlyOutcome(gate))
}

// If the server breaks the connection, net/http closes the upload while it is read. That is a
// failure of the server.
func TestServerThatAbortsAnUploadHasFailed(t *testing.T) {
	for name, use := range map[string]func(io.ReadCloser){
		"in the middle": func(upload io.ReadCloser) { _ = upload.Close(); _, _ = upload.Read(make([]byte, 1)) },
		"at the end":    func(upload io.ReadCloser) { _, _ = io.Copy(io.Discard, upload) },
	} {
		gate := weir.New("g", weir.Config{})
		transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
			use(req.Body)
			return nil, errDown
		})})
		read, write := io.Pipe()
		go func() {
			_, _ = io.WriteString(write, "all of it")
			_ = write.Close()
		}()
		_, err := transport.RoundTrip(newPost(t, "https://a.example/", read))
		require.ErrorIs(t, err, errDown)
		require.Equal(t, breaker.Failure, onlyOutcome(gate), name)
	}
}

func TestRequestIsNotCopiedIfItsBodyCannotFail(t *testing.T) {
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	for name, body := range map[string]io.Reader{
		"none": nil, "none of it": http.NoBody, "in memory": strings.NewReader("x"), "file": file,
	} {
		req := newPost(t, "https://a.example/", body)
		transport := weirhttp.NewTransport(weirhttp.ForAll(weir.New("g", weir.Config{})), weirhttp.TransportConfig{Base: baseFunc(func(sent *http.Request) (*http.Response, error) {
			require.Same(t, req, sent, name)
			return newResponse(http.StatusOK), nil
		})})
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
}

// The status 429, and 503 with a Retry-After, are the word of a service that it is overloaded.
func TestTheStatusOfAnOverload(t *testing.T) {
	for _, c := range []struct {
		status     int
		retryAfter string
		want       breaker.Outcome
	}{
		{429, "", breaker.Overloaded},
		{429, "1", breaker.Overloaded},
		{503, "", breaker.Failure},
		{503, "1", breaker.Overloaded},
		{500, "1", breaker.Failure},
		{200, "1", breaker.Success},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{}}
		if c.retryAfter != "" {
			resp.Header.Set("Retry-After", c.retryAfter)
		}
		require.Equal(t, c.want, weirhttp.DefaultClassify(resp, nil), "%d %s", c.status, c.retryAfter)
	}
}
