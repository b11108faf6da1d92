package weirhttp

import (
	"io"
	"net/http"
	"os"
	"sync/atomic"
)

// upload is a request's body that notices when it cannot be read, or ends too early, which
// is not the server's fault. Whoever sends on what others upload would else open his breakers for
// everybody whenever some of them hang up.
type upload struct {
	io.ReadCloser
	announced, got int64 // bytes; announced is 0 or less where it is not known
	closed, failed atomic.Bool
}

// watchUpload returns the request with an upload for a body, where it has one that may
// fail; and the request itself with nil where it has none. What can be had again by
// GetBody is in memory, and a file is copied faster as it is.
func watchUpload(req *http.Request) (*http.Request, *upload) {
	if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return req, nil
	}
	if _, ok := req.Body.(*os.File); ok {
		return req, nil
	}
	u := &upload{ReadCloser: req.Body, announced: req.ContentLength}
	watched := req.WithContext(req.Context())
	watched.Body = u
	return watched, u
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.got += int64(n)
	if err != nil && (err != io.EOF || u.got < u.announced) && !u.closed.Load() {
		u.failed.Store(true)
	}
	return n, err
}

// Close is called by the base, when the connection has broken for one. A Read that fails
// after that, because of it, is no fault of the caller's.
func (u *upload) Close() error {
	u.closed.Store(true)
	return u.ReadCloser.Close()
}

// hasFailed reports whether there was an upload that could not be read.
func (u *upload) hasFailed() bool { return u != nil && u.failed.Load() }
