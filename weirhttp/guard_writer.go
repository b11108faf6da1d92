package weirhttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/weir-go/weir/breaker"
)

// guardedResponse is the ResponseWriter of a handler behind a Guard. It remembers the status.
//
// It is always an http.Pusher and an io.ReaderFrom, because handlers must expect a Push that is not
// supported, and it can read without the ReaderFrom of the server. See writer for Flusher and
// Hijacker.
type guardedResponse struct {
	http.ResponseWriter
	request  *http.Request
	classify func(*http.Request, int) breaker.Outcome
	permit   breaker.Permit
	status   int // 0 until it is known
	returned bool
	late     bool // http.TimeoutHandler has already answered
	recorded bool
}

// end records the outcome after the handler has returned or panicked.
func (s *guardedResponse) end() {
	ctx := s.request.Context()
	silent := s.status == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case !s.returned && !cancelled(ctx):
		s.permit.Record(breaker.Failure)
	case silent, s.late:
		s.status = http.StatusServiceUnavailable // the answer of http.TimeoutHandler
		s.record(s.status)
	default:
		s.record(http.StatusOK)
	}
}

// record records the outcome by the status that the handler has set, or by the given status if the
// handler has not set one.
func (s *guardedResponse) record(status int) {
	if s.recorded {
		return
	}
	s.recorded = true
	if s.status == 0 {
		s.status = status
	}
	if cancelled(s.request.Context()) {
		s.permit.Record(breaker.Ignored)
		return
	}
	o := s.classify(s.request, s.status)
	if o != breaker.Failure {
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
	n, err := s.ResponseWriter.Write(p)
	return n, s.noted(err)
}

// WriteString implements io.StringWriter, for io.WriteString.
func (s *guardedResponse) WriteString(text string) (int, error) {
	s.setOK()
	n, err := io.WriteString(s.ResponseWriter, text)
	return n, s.noted(err)
}

// ReadFrom implements io.ReaderFrom, for io.Copy.
func (s *guardedResponse) ReadFrom(src io.Reader) (int64, error) {
	s.setOK()
	n, err := io.Copy(s.ResponseWriter, src)
	return n, s.noted(err)
}

func (s *guardedResponse) setOK() {
	if s.status == 0 {
		s.status = http.StatusOK
	}
}

// noted notes whether the error of a write says that the client has got another response.
func (s *guardedResponse) noted(err error) error {
	s.late = s.late || errors.Is(err, http.ErrHandlerTimeout)
	return err
}

// Push implements http.Pusher.
func (s *guardedResponse) Push(target string, opts *http.PushOptions) error {
	if p, ok := s.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// FlushError flushes the response, for http.ResponseController.
func (s *guardedResponse) FlushError() error {
	if unwrapsTo[http.Flusher](s.ResponseWriter) {
		s.record(http.StatusOK)
	}
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// Unwrap returns the ResponseWriter of the server, for http.ResponseController. If the Hijacker is
// deeper inside, Unwrap returns one that records the outcome.
func (s *guardedResponse) Unwrap() http.ResponseWriter {
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
func (s *guardedResponse) writer() http.ResponseWriter {
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
			*guardedResponse
			hijacker
		}{s, hijacker{s}}
	}
	return s
}

type flusher struct{ *guardedResponse }

func (f flusher) Flush() { _ = f.FlushError() }

type hijacker struct{ s *guardedResponse }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.s.ResponseWriter).Hijack()
	if err == nil {
		h.s.record(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

type hijackable struct {
	http.ResponseWriter
	hijacker
}

// Unwrap returns the ResponseWriter of the server.
func (h hijackable) Unwrap() http.ResponseWriter { return h.ResponseWriter }
