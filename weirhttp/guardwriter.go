package weirhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/weir-go/weir/breaker"
)

// served is a response in the making, of which the breaker wants to know the status.
type served struct {
	http.ResponseWriter
	request  *http.Request
	classify func(*http.Request, int) breaker.Outcome
	permit   breaker.Permit
	status   int // 0 until there is one
	returned bool
}

// end judges what has not been judged yet, also where the handler panics.
func (s *served) end() {
	if !s.returned && !gaveUp(s.request.Context()) {
		s.permit.Record(breaker.Failure)
		return
	}
	s.judge(http.StatusOK)
}

// judge books the response by its status, which is the given one where the handler has not set any.
func (s *served) judge(status int) {
	if s.status == 0 {
		s.status = status
	}
	if gaveUp(s.request.Context()) {
		s.permit.Record(breaker.Ignored)
		return
	}
	s.permit.Record(s.classify(s.request, s.status))
}

// WriteHeader notes the status, unless it only announces the one to come.
func (s *served) WriteHeader(status int) {
	if s.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *served) Write(p []byte) (int, error) {
	s.wrote()
	return s.ResponseWriter.Write(p)
}

// WriteString is what io.WriteString looks for.
func (s *served) WriteString(text string) (int, error) {
	s.wrote()
	return io.WriteString(s.ResponseWriter, text)
}

func (s *served) wrote() {
	if s.status == 0 {
		s.status = http.StatusOK
	}
}

// Unwrap is what http.ResponseController looks for.
func (s *served) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// writer returns the response as what the handler gets: it can do what the server's can. Handlers ask by type assertion,
// so a method must not be there where it would not work.
func (s *served) writer() http.ResponseWriter {
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

// flusher is a response that can be sent as far as it is.
type flusher struct{ *served }

func (f flusher) Flush() { _ = f.FlushError() } // nobody to tell

func (f flusher) FlushError() error {
	f.judge(http.StatusOK)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijacker struct{ s *served }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := h.s.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		h.s.judge(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

type readerFrom struct{ s *served }

func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	r.s.wrote()
	return r.s.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
}

type pusher struct{ s *served }

func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.s.ResponseWriter.(http.Pusher).Push(target, opts)
}
