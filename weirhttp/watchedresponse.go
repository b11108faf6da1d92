package weirhttp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// watchedResponse is the ResponseWriter of a handler. It remembers the status, and notices when the
// answer begins.
//
// It is always an http.Pusher and an io.ReaderFrom, because handlers must expect a Push that is not
// supported, and it can read without the ReaderFrom of the server. See writer for Flusher and
// Hijacker.
type watchedResponse struct {
	http.ResponseWriter
	status   int              // 0 until it is known
	late     bool             // http.TimeoutHandler has already answered
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
	n, err := s.ResponseWriter.Write(p)
	return n, s.noted(err)
}

// WriteString implements io.StringWriter, for io.WriteString.
func (s *watchedResponse) WriteString(text string) (int, error) {
	s.setOK()
	n, err := io.WriteString(s.ResponseWriter, text)
	return n, s.noted(err)
}

// ReadFrom implements io.ReaderFrom, for io.Copy.
func (s *watchedResponse) ReadFrom(src io.Reader) (int64, error) {
	s.setOK()
	n, err := io.Copy(s.ResponseWriter, src)
	return n, s.noted(err)
}

func (s *watchedResponse) setOK() {
	if s.status == 0 {
		s.status = http.StatusOK
	}
}

// noted notes whether the error of a write says that the client has got another response.
func (s *watchedResponse) noted(err error) error {
	s.late = s.late || errors.Is(err, http.ErrHandlerTimeout)
	return err
}

// Push implements http.Pusher.
func (s *watchedResponse) Push(target string, opts *http.PushOptions) error {
	if p, ok := s.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// FlushError flushes the response, for http.ResponseController.
func (s *watchedResponse) FlushError() error {
	if unwrapsTo[http.Flusher](s.ResponseWriter) {
		s.answered(http.StatusOK)
	}
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// Unwrap returns the ResponseWriter of the server, for http.ResponseController. If the Hijacker is
// deeper inside, Unwrap returns one that records the outcome.
func (s *watchedResponse) Unwrap() http.ResponseWriter {
	w := s.ResponseWriter
	if _, direct := w.(http.Hijacker); !direct && unwrapsTo[http.Hijacker](w) {
		return hijackable{w, hijacker{s}}
	}
	return w
}

// unwrapsTo reports whether w is a T, or an http.ResponseController would find one inside.
func unwrapsTo[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = outer.Unwrap()
	}
}

// writer returns a ResponseWriter that is a Flusher and a Hijacker if that of the server is one.
// Handlers find these by type assertions, so a method must be missing if it would not work.
func (s *watchedResponse) writer() http.ResponseWriter {
	_, flushes := s.ResponseWriter.(http.Flusher)
	_, hijacks := s.ResponseWriter.(http.Hijacker)
	switch {
	case flushes && hijacks: // HTTP/1.1
		return struct {
			flusher
			hijacker
		}{flusher{s}, hijacker{s}}
	case flushes: // HTTP/2
		return flusher{s}
	case hijacks:
		return struct {
			*watchedResponse
			hijacker
		}{s, hijacker{s}}
	}
	return s
}

type flusher struct{ *watchedResponse }

func (f flusher) Flush() { _ = f.FlushError() }

type hijacker struct{ s *watchedResponse }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.s.ResponseWriter).Hijack()
	if err == nil {
		h.s.answered(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

type hijackable struct {
	http.ResponseWriter
	hijacker
}

// Unwrap returns the ResponseWriter of the server.
func (h hijackable) Unwrap() http.ResponseWriter { return h.ResponseWriter }
