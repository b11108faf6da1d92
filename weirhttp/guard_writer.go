package weirhttp

import (
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
