package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
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
		b := breaker.New("b", breaker.Config{})
		ctx, cancel := context.WithTimeout(bg(), c.wait)
		get(b, ctx, c.url)
		cancel()
		require.Equal(t, c.want, b.Counts(), c.url)
	}
}

func TestAClassifierKeepsItsErrors(t *testing.T) {
	known, other := errors.New("known"), errors.New("other")
	for name, c := range map[string]struct {
		of   func(errs ...error) breaker.Classifier
		want breaker.Outcome
	}{
		"Accept":            {breaker.Accept, breaker.Success},
		"Ignore":            {breaker.Ignore, breaker.Ignored},
		"FailOn":            {breaker.FailOn, breaker.Failure},
		"Classifier.Accept": {breaker.Ignore().Accept, breaker.Success},
		"Classifier.Ignore": {breaker.Accept().Ignore, breaker.Ignored},
	} {
		errs := []error{known}
		classify := c.of(errs...)
		errs[0] = other // the slice is the caller's
		require.Equal(t, c.want, classify(known), name)
	}
}

// Scenario A22. In another breaker refusals are counted as results.
func TestRefusalsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := breaker.New("inner", breaker.Config{Cooldown: time.Hour})
		outer := breaker.New("outer", breaker.Config{})
		open(t, inner)
		for range 100 {
			err := outer.Run(bg(), func(ctx context.Context) error { return inner.Run(ctx, succeed) })
			require.ErrorIs(t, err, breaker.ErrOpen)
		}
		require.Equal(t, breaker.Closed, outer.State())
		require.Equal(t, window.Counts{Ignored: 100}, outer.Counts())

		b := newHalfOpen(t, breaker.Config{Probes: 2})
		holdPermits(t, b, 2)
		for range 100 {
			requireRefused(t, b)
		}
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Zero(t, b.Counts().Calls())
		require.Equal(t, int64(100), b.Counts().Refused)
	})
}

// Scenario A35. Another breaker never opens for a service that hangs until its callers' deadlines.
func TestDeadlinesAreFailuresAndCancellingIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		b := breaker.New("b", breaker.Config{FailureRun: breaker.Off})
		for range 50 {
			ctx, cancel := context.WithCancel(bg())
			time.AfterFunc(time.Millisecond, cancel)
			require.ErrorIs(t, b.Run(ctx, hang), context.Canceled)
		}
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, window.Counts{Ignored: 50}, b.Counts())
		for range 20 {
			ctx, cancel := context.WithTimeout(bg(), time.Millisecond)
			require.ErrorIs(t, b.Run(ctx, hang), context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, breaker.Open, b.State())
	})
}

// Scenario A36.
func TestAPanicIsAFailureAndPropagates(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	boom := &struct{ n int }{7}
	require.PanicsWithValue(t, boom, func() { _ = b.Run(bg(), func(context.Context) error { panic(boom) }) })
	require.PanicsWithValue(t, boom, func() {
		_, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { panic(boom) })
	})
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.Run(bg(), func(context.Context) error { runtime.Goexit(); return nil }) })
	wg.Wait()
	require.Equal(t, int64(3), b.Counts().Failures)
}

// Scenarios A33 and A34.
func TestBadResultsAndWrappedErrorsAreClassified(t *testing.T) {
	type response struct{ status int }
	byStatus := func(r response, err error) breaker.Outcome {
		if r.status >= 500 {
			return breaker.Failure
		}
		return breaker.DefaultClassify(err)
	}
	b := breaker.New("b", breaker.Config{Classify: breaker.Accept(io.EOF)})
	for _, status := range []int{200, 404, 503} {
		r, err := breaker.DoResult(bg(), b, func(context.Context) (response, error) { return response{status}, nil }, byStatus)
		require.NoError(t, err)
		require.Equal(t, status, r.status)
	}
	run(t, b, 1, func(context.Context) error { return fmt.Errorf("read: %w", errors.Join(errDown, io.EOF)) })
	require.Equal(t, window.Counts{Successes: 3, Failures: 1}, withoutStreak(b.Counts()))
	require.Panics(t, func() { _, _ = breaker.DoResult(bg(), b, func(context.Context) (int, error) { return 0, nil }, nil) })
}

// Scenarios B31 to B33.
func TestClassifyDecidesWhatIsRecorded(t *testing.T) {
	b := breaker.New("b", breaker.Config{Classify: breaker.FailOn(io.EOF)})
	run(t, b, 1, func(context.Context) error { return io.EOF })
	run(t, b, 1, func(context.Context) error { return errors.New("business") })
	require.Equal(t, window.Counts{Successes: 1, Failures: 1}, withoutStreak(b.Counts()))

	errFormat := errors.New("format")
	b = breaker.New("b", breaker.Config{Classify: breaker.Ignore(errFormat)})
	run(t, b, 1, fail)
	run(t, b, 1, func(context.Context) error { return errors.Join(io.EOF, errFormat) })
	require.Equal(t, window.Counts{Failures: 1, Ignored: 1}, withoutStreak(b.Counts()))

	b = breaker.New("b", breaker.Config{})
	for _, answer := range []string{"accepted", "failure"} {
		v, err := breaker.DoResult(bg(), b, func(context.Context) (string, error) { return answer, nil }, func(v string, err error) breaker.Outcome {
			if v == "failure" {
				return breaker.Failure
			}
			return breaker.DefaultClassify(err)
		})
		require.NoError(t, err)
		require.Equal(t, answer, v)
	}
	require.Equal(t, window.Counts{Successes: 1, Failures: 1}, withoutStreak(b.Counts()))
}

// Scenario B36.
func TestCancelledWaitsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		ctx, cancel := context.WithCancel(bg())
		time.AfterFunc(time.Second, cancel)
		wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		require.ErrorIs(t, b.Run(ctx, wait), context.Canceled)
		require.Zero(t, b.Counts().Calls())
		ctx, cancel = context.WithTimeout(bg(), time.Second)
		defer cancel()
		require.ErrorIs(t, b.Run(ctx, wait), context.DeadlineExceeded)
		require.Equal(t, int64(1), b.Counts().Failures)
	})
}
