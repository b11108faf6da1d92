package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/window"
)

// outcomeOf makes a call with ctx that returns err, and returns the outcome that b counts for it.
// If ctx has a deadline in the future, the call returns at the deadline.
func outcomeOf(ctx context.Context, t *testing.T, b *breaker.Breaker, err error) breaker.Outcome {
	t.Helper()
	before := b.Totals()
	p, refusal := b.Allow()
	require.NoError(t, refusal)
	if deadline, ok := ctx.Deadline(); ok {
		time.Sleep(time.Until(deadline))
	}
	require.True(t, p.Done(ctx, err))
	after := b.Totals()
	switch {
	case after.Successes > before.Successes:
		return breaker.Success
	case after.Failures > before.Failures:
		return breaker.Failure
	}
	require.Greater(t, after.Ignored, before.Ignored)
	return breaker.Ignored
}

func TestVerdicts(t *testing.T) { synctest.Test(t, testVerdicts) }

func testVerdicts(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(bg())
	cancel(io.ErrClosedPipe)
	slow, stop := context.WithTimeout(bg(), time.Second)
	defer stop()
	late, stop := context.WithDeadline(bg(), time.Now().Add(-time.Second))
	defer stop()
	b := breaker.New("b", breaker.Config{})
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want breaker.Outcome
	}{
		{"no error", bg(), nil, breaker.Success},
		{"no error though the caller has gone", cancelled, nil, breaker.Success},
		{"an error", bg(), errDown, breaker.Failure},
		{"an inner refusal", bg(), sentinel.ErrRefused, breaker.Ignored},
		{"a wrapped inner refusal", bg(), errors.Join(io.EOF, fmt.Errorf("in: %w", sentinel.ErrRefused)), breaker.Ignored},
		{"the caller gave up", cancelled, fmt.Errorf("get: %w", context.Canceled), breaker.Ignored},
		{"the caller gave up, by its cause", cancelled, io.ErrClosedPipe, breaker.Ignored},
		{"the caller gave up, in other words", cancelled, errDown, breaker.Ignored},
		{"somebody else's cancelling", bg(), context.Canceled, breaker.Failure},
		{"the deadline passed", slow, context.DeadlineExceeded, breaker.Failure},
		{"the deadline passed before the call", late, context.DeadlineExceeded, breaker.Ignored},
		{"the service's own deadline", bg(), context.DeadlineExceeded, breaker.Failure},
	} {
		require.Equal(t, c.want, outcomeOf(c.ctx, t, b, c.err), c.name)
	}
}

func TestClassifyDecides(t *testing.T) {
	errNotFound := errors.New("not found")
	b := breaker.New("b", breaker.Config{Classify: func(err error) breaker.Outcome {
		if errors.Is(err, errNotFound) {
			return breaker.Success
		}
		return breaker.DefaultClassify(err)
	}})
	run(t, b, 2, func(context.Context) error { return fmt.Errorf("user 7: %w", errNotFound) })
	run(t, b, 1, fail)
	run(t, b, 1, func(context.Context) error { return sentinel.ErrRefused })
	require.Equal(t, window.Counts{Successes: 2, Failures: 1, Ignored: 1, ConsecutiveFailures: 1}, b.Counts())
}

func TestClassifyThatPanicsLosesNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := false
		b := breaker.New("b", breaker.Config{Recovery: breaker.Off, Probes: 1, Classify: func(err error) breaker.Outcome {
			if panics {
				panic("classify")
			}
			return breaker.DefaultClassify(err)
		}})
		open(t, b)
		time.Sleep(5 * time.Second)
		panics = true
		require.PanicsWithValue(t, "classify", func() { _ = b.Run(bg(), succeed) })
		require.Equal(t, breaker.HalfOpen, b.State())
		panics = false
		run(t, b, 1, succeed)
		require.Equal(t, breaker.Closed, b.State())
	})
}

// faultyServer starts a server that answers, hangs until the request's context or the test ends,
// closes the connection, or panics in its handler, depending on the path.
func faultyServer(t *testing.T) *httptest.Server {
	hang := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/drop", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { close(hang); server.Close() })
	return server
}

func TestCallsToARealServerCountByHowTheyEnd(t *testing.T) {
	server := faultyServer(t)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	get := func(b *breaker.Breaker, ctx context.Context, url string) {
		err := b.Run(ctx, func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				return err
			}
			resp, err := server.Client().Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
		require.NotErrorIs(t, err, breaker.ErrOpen)
	}
	for _, c := range []struct {
		url  string
		wait time.Duration
		want window.Counts
	}{
		{server.URL + "/ok", time.Minute, window.Counts{Successes: 1}},
		{server.URL + "/hang", 300 * time.Millisecond, window.Counts{Failures: 1, ConsecutiveFailures: 1}},
		{server.URL + "/panic", time.Minute, window.Counts{Failures: 1, ConsecutiveFailures: 1}},
		{server.URL + "/drop", time.Minute, window.Counts{Failures: 1, ConsecutiveFailures: 1}},
		{"http://" + gone.Addr().String(), time.Minute, window.Counts{Failures: 1, ConsecutiveFailures: 1}},
	} {
		b := breaker.New("b", breaker.Config{CountDeadlines: true})
		ctx, cancel := context.WithTimeout(bg(), c.wait)
		get(b, ctx, c.url)
		cancel()
		require.Equal(t, c.want, b.Counts(), c.url)
	}
}
