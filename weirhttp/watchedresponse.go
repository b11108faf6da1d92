package weirhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// watchedResponse is the ResponseWriter of a handler. It remembers the status, and notices when the
// answer begins.
type watchedResponse struct {
	http.ResponseWriter
	status   int              // 0 until it is known
	header   func()           // called when the handler has set the status; nil for none
	answered func(status int) // called by Flush and by Hijack
}

// WriteHeader remembers the status, unless it is informational.
func (s *watchedResponse) WriteHeader(status int) {
	if s.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		s.status = status
		if s.header != nil {
			s.header()
		}
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *watchedResponse) Write(p []byte) (int, error) {
	s.setOK()
	return s.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter, for io.WriteString.
func (s *watchedResponse) WriteString(text string) (int, error) {
	s.setOK()
	return io.WriteString(s.ResponseWriter, text)
}

func (s *watchedResponse) setOK() {
	if s.status == 0 {
		s.status = http.StatusOK
	}
}

// Unwrap returns the ResponseWriter of the server, for http.ResponseController.
func (s *watchedResponse) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// writer returns a ResponseWriter with the same optional methods as that of the server. Handlers
// find these by type assertions, so a method must be missing if it would not work.
func (s *watchedResponse) writer() http.ResponseWriter {
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

type flusher struct{ *watchedResponse }

func (f flusher) Flush() { _ = f.FlushError() }

func (f flusher) FlushError() error {
	f.answered(http.StatusOK)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijacker struct{ s *watchedResponse }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := h.s.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		h.s.answered(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

type readerFrom struct{ s *watchedResponse }

func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	r.s.setOK()
	return r.s.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
}

type pusher struct{ s *watchedResponse }

func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.s.ResponseWriter.(http.Pusher).Push(target, opts)
}
