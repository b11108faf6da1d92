package weirhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/weir-go/weir/breaker"
)

// guardedResponse is the ResponseWriter of a handler behind a Guard. It remembers the status.
type guardedResponse struct {
	http.ResponseWriter
	request  *http.Request
	classify func(*http.Request, int) breaker.Outcome
	permit   breaker.Permit
	status   int // 0 until it is known
	returned bool
}

// end records the outcome after the handler has returned or panicked.
func (s *guardedResponse) end() {
	if !s.returned && !cancelled(s.request.Context()) {
		s.permit.Record(breaker.Failure)
		return
	}
	s.record(http.StatusOK)
}

// record records the outcome by the status that the handler has set, or by the given status if the
// handler has not set one.
func (s *guardedResponse) record(status int) {
	if s.status == 0 {
		s.status = status
	}
	if cancelled(s.request.Context()) {
		s.permit.Record(breaker.Ignored)
		return
	}
	o := s.classify(s.request, s.status)
	if !o.Failed() {
		s.permit.Record(o)
		return
	}
	s.permit.DoneAs(s.request.Context(), statusError(s.status), o)
}

// WriteHeader remembers the status, unless it is informational.
func (s *guardedResponse) WriteHeader(status int) {
	if s.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *guardedResponse) Write(p []byte) (int, error) {
	s.setOK()
	return s.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter, for io.WriteString.
func (s *guardedResponse) WriteString(text string) (int, error) {
	s.setOK()
	return io.WriteString(s.ResponseWriter, text)
}

func (s *guardedResponse) setOK() {
	if s.status == 0 {
		s.status = http.StatusOK
	}
}

// Unwrap returns the ResponseWriter of the server, for http.ResponseController.
func (s *guardedResponse) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// writer returns a ResponseWriter with the same optional methods as that of the server. Handlers
// find these by type assertions, so a method must be missing if it would not work.
func (s *guardedResponse) writer() http.ResponseWriter {
	_, flushes := s.ResponseWriter.(http.Flusher)
	_, hijacks := s.ResponseWriter.(http.Hijacker)
	_, reads := s.ResponseWriter.(io.ReaderFrom)
	_, pushes := s.ResponseWriter.(http.Pusher)
	f := flusher{s}
	switch {
	case flushes && hijacks && reads: // HTTP/1.1
		return struct {
			flusher
			hijacker
			readerFrom
		}{f, hijacker{s}, readerFrom{s}}
	case flushes && hijacks:
		return struct {
			flusher
			hijacker
		}{f, hijacker{s}}
	case flushes && pushes: // HTTP/2
		return struct {
			flusher
			pusher
		}{f, pusher{s}}
	case flushes:
		return f
	}
	return s
}

type flusher struct{ *guardedResponse }

func (f flusher) Flush() { _ = f.FlushError() }

func (f flusher) FlushError() error {
	f.record(http.StatusOK)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijacker struct{ s *guardedResponse }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := h.s.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		h.s.record(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

type readerFrom struct{ s *guardedResponse }

func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	r.s.setOK()
	return r.s.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
}

type pusher struct{ s *guardedResponse }

func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.s.ResponseWriter.(http.Pusher).Push(target, opts)
}
