package main

import (
	"net/http"
	"net/http/httptest"
	"time"
)

// schedule is when the service fails.
type schedule struct {
	start time.Time
	run   time.Duration
}

// fails reports whether the service fails now: from 30 % to 60 % of the run.
func (s schedule) fails() bool {
	share := float64(time.Since(s.start)) / float64(s.run)
	return share >= 0.3 && share < 0.6
}

// newService starts a payment service on the loopback interface.
func newService(s schedule) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.fails() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
}
