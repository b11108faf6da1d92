package weirhttp

import (
	"io"
	"net/http"
	"sync/atomic"
)

// fallBack returns the result of Fallback. It closes the request's body afterwards unless Fallback
// used it: another RoundTripper may still read the body, and closes it.
func (t *Transport) fallBack(req *http.Request, err error) (*http.Response, error) {
	if req.Body == nil {
		return t.config.Fallback(req, err)
	}
	body := &trackedBody{ReadCloser: req.Body}
	tracked := req.WithContext(req.Context())
	tracked.Body = body
	defer func() {
		if !body.used.Load() {
			closeBody(req)
		}
	}()
	resp, err := t.config.Fallback(tracked, err)
	if resp != nil && resp.Request == tracked {
		resp.Request = req
	}
	return resp, err
}

// trackedBody is a body that remembers whether it was used.
type trackedBody struct {
	io.ReadCloser
	used atomic.Bool
}

func (b *trackedBody) Read(p []byte) (int, error) {
	b.used.Store(true)
	return b.ReadCloser.Read(p)
}

func (b *trackedBody) Close() error {
	b.used.Store(true)
	return b.ReadCloser.Close()
}

// closeBody closes the body of a request that is not sent, as a RoundTripper must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
