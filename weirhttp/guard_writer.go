package weirhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-go/weir/breaker"
)

// guardedResponse is the ResponseWriter of a handler behind a Guard.
type guardedResponse struct {
	watchedResponse
	request  *http.Request
	classify func(*http.Request, int) breaker.Outcome
	permit   breaker.Permit
	returned bool
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
	if !o.Failed() {
		s.permit.Record(o)
		return
	}
	s.permit.DoneAs(s.request.Context(), statusError(s.status), o)
}
