package weirtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ErrDown is an error for Answer.Err, of a service that cannot be reached. A breaker counts it as a
// failure by default.
var ErrDown = errors.New("weirtest: the service is down")

// Answer says how a Service answers a call. The zero value is a success at once.
type Answer struct {
	// Err is the error of the call. Default none.
	Err error
	// Status is the status of a response. From 400 on it is an error for Call, unless Err is set.
	// Default 200.
	Status int
	// Header is the header of a response, such as Retry-After. Default empty.
	Header http.Header
	// Body is the body of a response. Default empty.
	Body string
	// After is how long the answer takes. A call whose context ends earlier returns the error of
	// the context. Default 0.
	After time.Duration
	// Hang answers no call before its context ends. The call then returns the error of the context.
	// Default false.
	Hang bool
}

// Service is a service that answers as told. Its methods Call and RoundTrip make calls, for a
// weir.Gate or breaker.Breaker and for an http.Client. The zero value answers each call with
// success. All methods may be called from any number of goroutines.
type Service struct {
	mu     sync.Mutex
	calls  int
	next   []Answer // of the next calls
	always Answer   // of calls after these
}

// Always sets the answer of all calls that begin from now on, and discards what Next has added.
// Calls that wait for an earlier answer keep it.
func (s *Service) Always(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.always = nil, a
}

// Next adds an answer for n calls, after those that earlier calls of Next have added. Further calls
// get the answer of Always again. If n is 0 or less, Next changes nothing.
func (s *Service) Next(n int, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.next = append(s.next, a)
	}
}

// Calls returns how many calls the service has got. Calls that a gate refused are not among them.
func (s *Service) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Call makes a call and returns the error of its answer, or the error of ctx if that ends first.
func (s *Service) Call(ctx context.Context) error {
	a, err := s.wait(ctx)
	if err == nil && a.Status >= http.StatusBadRequest {
		return fmt.Errorf("weirtest: status %d", a.Status)
	}
	return err
}

// RoundTrip makes a call, and so implements http.RoundTripper. The context is that of the request.
// It closes the body of the request unread.
func (s *Service) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
	}
	a, err := s.wait(req.Context())
	if err != nil {
		return nil, err
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	header := a.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)),
		StatusCode: a.Status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     header,
		Body:       io.NopCloser(strings.NewReader(a.Body)),
		Request:    req,

		ContentLength: int64(len(a.Body)),
	}, nil
}

// wait counts a call and waits for as long as its answer takes. The error is that of the answer or
// of ctx.
func (s *Service) wait(ctx context.Context) (Answer, error) {
	a := s.take()
	if err := ctx.Err(); err != nil {
		return a, err
	}
	if a.Hang {
		<-ctx.Done()
		return a, ctx.Err()
	}
	if a.After > 0 {
		timer := time.NewTimer(a.After)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
	return a, a.Err
}

// take counts a call and returns its answer.
func (s *Service) take() Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if len(s.next) == 0 {
		return s.always
	}
	a := s.next[0]
	s.next = s.next[1:]
	return a
}
