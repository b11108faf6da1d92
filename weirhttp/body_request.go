package weirhttp

import (
	"io"
	"net/http"
	"os"
	"sync/atomic"
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
