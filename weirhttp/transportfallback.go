package weirhttp

import (
	"io"
	"net/http"
	"sync/atomic"
)

// fallBack asks Fallback. A body that was left alone is closed after it; one that was
// taken may still be in use, by another RoundTripper, who closes it.
func (t *Transport) fallBack(req *http.Request, err error) (*http.Response, error) {
	if req.Body == nil {
		return t.config.Fallback(req, err)
	}
	body := &offered{ReadCloser: req.Body}
	diverted := req.WithContext(req.Context())
	diverted.Body = body
	defer func() {
		if !body.taken.Load() {
			closeBody(req)
		}
	}()
	return t.config.Fallback(diverted, err)
}

// offered is a body that notices when somebody takes it.
type offered struct {
	io.ReadCloser
	taken atomic.Bool
}

func (b *offered) Read(p []byte) (int, error) {
	b.taken.Store(true)
	return b.ReadCloser.Read(p)
}

func (b *offered) Close() error {
	b.taken.Store(true)
	return b.ReadCloser.Close()
}

// closeBody closes the body of a request that is not sent, as a RoundTripper must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
