package main

import (
	"net/http"
	"net/http/httptest"
	"time"
)

// schedule says when the service fails.
type schedule struct {
	start time.Time
	run   time.Duration
}

// fails is whether it does now: from three tenths of the run to six.
func (s schedule) fails() bool {
	done := 10 * time.Since(s.start)
	return done >= 3*s.run && done < 6*s.run
}

// newService starts a payment service on the loopback interface.
func newService(s schedule) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.fails() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
}
