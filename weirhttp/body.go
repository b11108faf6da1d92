package weirhttp

import (
	"context"
	"io"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// requestBody is a request's body. It records whether the body could not be read or ended too
// early. Such a call does not count as a failure of the server. If it did, clients that disconnect
// during an upload could open the breaker of a proxy for all its clients.
type requestBody struct {
	io.ReadCloser
	length, read   int64 // bytes; length is 0 or less if it is not known
	closed, failed atomic.Bool
}

// watchRequestBody returns the request with a requestBody, or the request itself and nil if its
// body need not be watched. A body with GetBody is in memory, so it cannot fail. A file is not
// wrapped, because it is sent faster as it is.
func watchRequestBody(req *http.Request) (*http.Request, *requestBody) {
	if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return req, nil
	}
	if _, ok := req.Body.(*os.File); ok {
		return req, nil
	}
	body := &requestBody{ReadCloser: req.Body, length: req.ContentLength}
	watched := req.WithContext(req.Context())
	watched.Body = body
	return watched, body
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err != nil && (err != io.EOF || b.read < b.length) && !b.closed.Load() {
		b.failed.Store(true)
	}
	return n, err
}

// Close is called by the base, for example when the connection breaks. A Read that fails afterwards
// is not a failure of the body.
func (b *requestBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// unreadable reports whether the body could not be read. b may be nil.
func (b *requestBody) unreadable() bool { return b != nil && b.failed.Load() }

// watchedBody is the body of a response whose failures are recorded with a breaker.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context
	breaker *breaker.Breaker
	done    atomic.Bool // it was closed, or its failure was recorded
}

// watchBody replaces the body of the response with a watched one. It does not replace a body that
// can be written to. Such a body is the connection of a protocol upgrade: it belongs to the caller
// and keeps its other methods.
func watchBody(req *http.Request, resp *http.Response, gate *weir.Gate) {
	if _, writable := resp.Body.(io.Writer); writable || resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ctx: req.Context(), breaker: gate.Breaker()}
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !cancelled(b.ctx) && !b.done.Swap(true) {
		b.recordFailure()
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.done.Store(true)
	return b.ReadCloser.Close()
}

// recordFailure records a call that failed. The permit of the request is used up, because the
// outcome of the call was recorded when its headers arrived. So recordFailure acquires another
// permit. It records nothing while the breaker is half-open, because only headers decide about
// probes. It also records nothing while the breaker is recovering, because the breaker then gives
// permits only for a share of the calls.
func (b *watchedBody) recordFailure() {
	switch b.breaker.State() {
	case breaker.Open, breaker.HalfOpen, breaker.Recovering, breaker.ForcedOpen:
		return
	default:
	}
	if permit, err := b.breaker.Allow(); err == nil {
		permit.Record(context.Background(), nil, breaker.Failure)
	}
}
