package weirtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirtest"
)

func TestAnswersComeInOrder(t *testing.T) {
	var s weirtest.Service
	answers := func(n int) (list []string) {
		for range n {
			list = append(list, fmt.Sprint(s.Call(t.Context())))
		}
		return list
	}
	fault := func(status int) weirtest.Answer { return weirtest.Answer{Status: status} }
	require.Equal(t, []string{"<nil>"}, answers(1))
	s.Next(2, fault(500))
	s.Next(1, fault(400))
	s.Next(0, fault(400))
	s.Next(-1, fault(400))
	require.Equal(t, []string{"weirtest: status 500", "weirtest: status 500", "weirtest: status 400", "<nil>"}, answers(4))
	s.Next(2, fault(500))
	s.Always(fault(503))
	require.Equal(t, []string{"weirtest: status 503", "weirtest: status 503", "weirtest: status 503"}, answers(3))
	s.Next(1, weirtest.Answer{Status: 399})
	require.Equal(t, []string{"<nil>", "weirtest: status 503"}, answers(2))
	require.Equal(t, 10, s.Calls())
}

func TestResponses(t *testing.T) {
	var s weirtest.Service
	header := http.Header{"Retry-After": {"7"}}
	s.Next(2, weirtest.Answer{Status: 503, Header: header, Body: "busy"})
	for range 2 { // the first reader changes the header
		body := &closeRecorder{Reader: strings.NewReader("request")}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a.example/", body)
		require.NoError(t, err)
		resp, err := s.RoundTrip(req)
		require.NoError(t, err)
		require.True(t, body.closed)
		require.Equal(t, "503 Service Unavailable", resp.Status)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, "7", resp.Header.Get("Retry-After"))
		require.EqualValues(t, 4, resp.ContentLength)
		require.Same(t, req, resp.Request)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "busy", string(text))
		resp.Header.Set("Retry-After", "1")
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example/", http.NoBody)
	require.NoError(t, err)
	resp, err := s.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "200 OK", resp.Status)
	require.NotNil(t, resp.Header)

	s.Always(weirtest.Answer{Status: 503, Err: weirtest.ErrDown})
	resp, err = s.RoundTrip(req)
	require.ErrorIs(t, err, weirtest.ErrDown)
	require.Nil(t, resp)
}

type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return nil }

// took returns how long a call with a timeout takes, and its error.
func took(t *testing.T, s *weirtest.Service, timeout time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	began := time.Now()
	err := s.Call(ctx)
	return time.Since(began), err
}

// packageService is used in several bubbles.
var packageService weirtest.Service

func TestSlowAndHangingAnswers(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := &packageService
			s.Always(weirtest.Answer{After: 3 * time.Second, Err: weirtest.ErrDown})
			d, err := took(t, s, time.Minute)
			require.Equal(t, 3*time.Second, d)
			require.ErrorIs(t, err, weirtest.ErrDown)
			d, err = took(t, s, time.Second)
			require.Equal(t, time.Second, d)
			require.ErrorIs(t, err, context.DeadlineExceeded)

			s.Always(weirtest.Answer{Hang: true, Err: weirtest.ErrDown})
			d, err = took(t, s, time.Hour)
			require.Equal(t, time.Hour, d)
			require.ErrorIs(t, err, context.DeadlineExceeded)

			s.Always(weirtest.Answer{Err: weirtest.ErrDown})
			_, err = took(t, s, -time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded, "a call whose context has ended gets no answer")
		})
	}
}

func TestACallThatHangsIsNotChangedByALaterAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s weirtest.Service
		s.Always(weirtest.Answer{Hang: true})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Call(ctx) }()
		synctest.Wait()
		s.Always(weirtest.Answer{})
		require.NoError(t, s.Call(t.Context()))
		synctest.Wait()
		require.Empty(t, ended)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestConcurrentUse(t *testing.T) {
	var s weirtest.Service
	var transitions weirtest.Transitions
	var alerts weirtest.Alerts
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				s.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
				_ = s.Call(t.Context())
				transitions.Record(breaker.Change{To: breaker.Open})
				_ = alerts.Notify(t.Context(), alert.Alert{Rule: "r", State: alert.Firing})
				_, _, _ = transitions.All(), alerts.All(), s.Calls()
			}
		})
	}
	all.Wait()
	require.Equal(t, 800, s.Calls())
	require.NoError(t, s.Call(t.Context()), "each answer was given once")
	require.Len(t, transitions.All(), 800)
	require.Len(t, alerts.All(), 800)
}

// failures is a testing.TB that keeps its failures.
type failures struct {
	testing.TB
	list []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func TestChecksSayWhatTheyWant(t *testing.T) {
	var transitions weirtest.Transitions
	b := breaker.New("b", breaker.Config{OnChange: transitions.Record})
	b.OpenFor(time.Hour)
	_, open := b.Allow()
	alerts := &weirtest.Alerts{}
	for _, a := range []alert.Alert{{Rule: "a", State: alert.Firing}, {Rule: "b", State: alert.Firing}, {Rule: "a", State: alert.Resolved}} {
		require.NoError(t, alerts.Notify(t.Context(), a))
	}
	for want, check := range map[string]func(testing.TB){
		"": func(t testing.TB) {
			weirtest.WantRefused(t, open, breaker.ErrOpen)
			transitions.Want(t, breaker.Open)
			alerts.Want(t, "a", alert.Firing, alert.Resolved)
			alerts.Want(t, "b", alert.Firing)
			alerts.Want(t, "c")
		},
		fmt.Sprintf("error is %q, want a refusal: %q", open, limiter.ErrLimited): func(t testing.TB) { weirtest.WantRefused(t, open, limiter.ErrLimited) },
		`error is "EOF", want a refusal: "EOF"`:                                  func(t testing.TB) { weirtest.WantRefused(t, io.EOF, io.EOF) },
		`error is "nil", want a refusal: "EOF"`:                                  func(t testing.TB) { weirtest.WantRefused(t, nil, io.EOF) },
		"entered states are [open], want []":                                     func(t testing.TB) { transitions.Want(t) },
		`alerts of the rule "a" are [firing resolved], want [firing]`:            func(t testing.TB) { alerts.Want(t, "a", alert.Firing) },
	} {
		f := &failures{TB: t}
		check(f)
		require.Equal(t, want, strings.Join(f.list, "\n"))
	}
}
