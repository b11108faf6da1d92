package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

var (
	errDown = errors.New("down")
	t0      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func bg() context.Context { return context.Background() }

func succeed(context.Context) error { return nil }

func fail(context.Context) error { return errDown }

// run makes n calls with fn and requires that all are let through.
func run(t *testing.T, b *breaker.Breaker, n int, fn func(context.Context) error) {
	t.Helper()
	for range n {
		require.NotErrorIs(t, b.Run(bg(), fn), breaker.ErrOpen)
	}
}

// outcomeOf returns the outcome that b counts for a call that was made with ctx and returned err.
func outcomeOf(ctx context.Context, t *testing.T, b *breaker.Breaker, err error) breaker.Outcome {
	t.Helper()
	before := b.Totals()
	p, refusal := b.Allow()
	require.NoError(t, refusal)
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

func open(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	run(t, b, 20, fail)
	require.Equal(t, breaker.Open, b.State())
}

func refused(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	called := false
	err := b.Run(bg(), func(context.Context) error { called = true; return nil })
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.False(t, called, "a refused call must not reach the function")
}

func TestFreshBreakerIsClosedAndEmpty(t *testing.T) {
	b := breaker.New("fresh", breaker.Config{})
	require.Equal(t, breaker.Closed, b.State())
	require.False(t, b.Tripped())
	require.Zero(t, b.Counts())
	require.Zero(t, b.Totals())
	require.Equal(t, "fresh", b.Name())
}

func TestRateAtTheThresholdOpensAndOneBelowDoesNot(t *testing.T) {
	for _, c := range []struct {
		rate            float64
		failures, calls int
		want            breaker.State
	}{
		{0.57, 57, 100, breaker.Open},
		{0.57, 56, 100, breaker.Closed},
		{0.5, 50, 100, breaker.Open},
		{0.5, 248, 500, breaker.Closed}, // 49.6 %
		{2.0 / 3, 20, 30, breaker.Open},
		{1.0 / 3, 10, 30, breaker.Open},
		{1.0 / 3, 9, 30, breaker.Closed},
		{1, 20, 20, breaker.Open},
		{1, 99, 100, breaker.Closed},
		{1e-9, 1, 100, breaker.Open},
	} {
		b := breaker.New("b", breaker.Config{FailureRate: c.rate, MinCalls: c.calls})
		run(t, b, c.failures, fail)
		run(t, b, c.calls-c.failures, succeed)
		require.Equal(t, c.want, b.State(), "%d failures of %d at %v", c.failures, c.calls, c.rate)
	}
}

func TestNothingIsJudgedBelowMinCalls(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 10})
	run(t, b, 9, fail)
	require.Equal(t, breaker.Closed, b.State())
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Open, b.State(), "a success may be the call that reaches MinCalls")
}

func TestOffJudgesFromTheFirstCallOrNever(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1})
	run(t, b, 1, fail)
	require.Equal(t, breaker.Open, b.State())

	b = breaker.New("b", breaker.Config{FailureRate: breaker.Off})
	run(t, b, 1000, fail)
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, int64(1000), b.Counts().Failures)
}

func TestOldFailuresLeaveTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 19, fail)
		time.Sleep(10 * time.Second)
		run(t, b, 19, fail)
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, int64(19), b.Counts().Failures)
		require.Equal(t, int64(38), b.Totals().Failures)
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

func TestDayOldSuccessesDoNotMaskFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 10_000, succeed)
		time.Sleep(24 * time.Hour)
		open(t, b)
	})
}

func TestFailuresAmongManySuccessesAtABucketEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 9100, succeed)
		time.Sleep(time.Second)
		run(t, b, 900, fail)
		require.Equal(t, breaker.Closed, b.State(), "9 % of 10,000 calls, not 100 % of the second's")
		require.InDelta(t, 0.09, b.Counts().FailureRate(), 1e-9)
	})
}

func TestTheWholeCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var changes []breaker.Change
		b := breaker.New("b", breaker.Config{OnChange: func(c breaker.Change) { changes = append(changes, c) }})

		run(t, b, 10, succeed)
		run(t, b, 10, fail)
		require.Equal(t, breaker.Open, b.State(), "10 of 20 calls failed")
		refused(t, b)

		time.Sleep(5*time.Second - 1)
		require.Equal(t, breaker.Open, b.State(), "a tick before the cooldown ends")
		refused(t, b)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State(), "half-open once due, without traffic")
		require.Len(t, changes, 1)
		require.Zero(t, b.Counts())

		time.Sleep(time.Second)
		run(t, b, 2, fail)
		require.Equal(t, breaker.HalfOpen, b.State(), "judged after three results, not before")
		require.Equal(t, int64(2), b.Counts().Failures)
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State(), "the probes failed")

		time.Sleep(5 * time.Second)
		run(t, b, 3, succeed)
		require.Equal(t, breaker.Closed, b.State(), "the probes succeeded")
		require.Zero(t, b.Counts(), "a closed breaker begins anew")

		type step struct {
			seq      uint64
			after    time.Duration
			from, to breaker.State
			failures int64
			reason   string
		}
		var got []step
		for _, c := range changes {
			got = append(got, step{c.Seq(), c.At.Sub(start), c.From, c.To, c.Counts.Failures, c.Reason})
		}
		require.Equal(t, []step{
			{1, 0, breaker.Closed, breaker.Open, 10, "failure rate 50% of 20 calls, limit 50%"},
			{2, 5 * time.Second, breaker.Open, breaker.HalfOpen, 0, "failure rate 50% of 20 calls, limit 50%"},
			{3, 6 * time.Second, breaker.HalfOpen, breaker.Open, 3, "failure rate 100% of 3 calls, limit 50%, of probes"},
			{4, 11 * time.Second, breaker.Open, breaker.HalfOpen, 0, "failure rate 100% of 3 calls, limit 50%, of probes"},
			{5, 11 * time.Second, breaker.HalfOpen, breaker.Closed, 0, "3 of 3 probes succeeded"},
		}, got)
		require.Equal(t, window.Totals{Successes: 13, Failures: 13, Refused: 2}, b.Totals())
	})
}

func TestOldFailuresDoNotTripABreakerThatHasJustClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Window: time.Minute})
		open(t, b)
		time.Sleep(5 * time.Second)
		run(t, b, 3, succeed)
		require.Equal(t, breaker.Closed, b.State())
		run(t, b, 19, fail)
		require.Equal(t, breaker.Closed, b.State(), "the twenty failures before do not count")
		require.Equal(t, int64(19), b.Counts().Calls())
		run(t, b, 1, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

func TestCountsOfAnOpenBreakerShowWhatOpenedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Cooldown: time.Hour})
		open(t, b)
		time.Sleep(30 * time.Minute)
		refused(t, b)
		refused(t, b)
		require.Equal(t, window.Counts{Failures: 20, ConsecutiveFailures: 20, Refused: 2}, b.Counts())
	})
}

func TestOpenErrorSaysWhyAndUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("payments", breaker.Config{})
		open(t, b)
		until := time.Now().Add(5 * time.Second)
		time.Sleep(2 * time.Second)
		err := b.Run(bg(), succeed)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorIs(t, err, sentinel.ErrRefused)
		require.NotErrorIs(t, err, errDown)
		var e *breaker.OpenError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "payments", e.Name)
		require.Equal(t, breaker.Open, e.State)
		require.Equal(t, "failure rate 100% of 20 calls, limit 50%", e.Reason)
		require.True(t, e.Until.Equal(until), "%v, want %v", e.Until, until)
		require.Equal(t, 3*time.Second, e.RetryAfter())
		require.Equal(t, fmt.Sprintf("breaker %q is open until %s: failure rate 100%% of 20 calls, limit 50%%", "payments", until.Format(time.TimeOnly)), err.Error())

		time.Sleep(3 * time.Second)
		probes := hold(t, b, 3)
		err = b.Run(bg(), succeed)
		require.ErrorAs(t, err, &e)
		require.Equal(t, breaker.HalfOpen, e.State)
		require.Equal(t, 10*time.Second, e.RetryAfter())
		require.Equal(t, `breaker "payments" is half-open and all its probes are in flight (failure rate 100% of 20 calls, limit 50%)`, err.Error())
		time.Sleep(time.Minute)
		require.Equal(t, time.Millisecond, e.RetryAfter(), "it has passed")
		require.True(t, probes[0].Record(breaker.Success))
	})
}

// hold acquires n permits and records no result.
func hold(t *testing.T, b *breaker.Breaker, n int) []*breaker.Permit {
	t.Helper()
	var held []*breaker.Permit
	for range n {
		p, err := b.Allow()
		require.NoError(t, err)
		held = append(held, &p)
	}
	return held
}

func TestDoReturnsTheValue(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1})
	v, err := breaker.Do(bg(), b, func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, v)
	v, err = breaker.Do(bg(), b, func(context.Context) (int, error) { return 8, errDown })
	require.Equal(t, errDown, err)
	require.Equal(t, 8, v, "the value stands whatever the error")
	v, err = breaker.Do(bg(), b, func(context.Context) (int, error) { return 9, nil })
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.Zero(t, v)
}

func TestContextThatIsDoneTakesNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	ctx, cancel := context.WithCancel(bg())
	cancel()
	require.Equal(t, context.Canceled, b.Run(ctx, succeed))
	_, err := breaker.Do(ctx, b, func(context.Context) (int, error) { return 1, nil })
	require.Equal(t, context.Canceled, err)
	require.Zero(t, b.Totals())
}

func TestNilFunctionPanicsAndTakesNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	require.PanicsWithValue(t, "breaker: the function to call is nil", func() { _ = b.Run(bg(), nil) })
	require.PanicsWithValue(t, "breaker: the function to call is nil", func() { _, _ = breaker.Do[int](bg(), b, nil) })
	require.Zero(t, b.Totals())
}

func TestVerdicts(t *testing.T) {
	cancelled, cancel := context.WithCancelCause(bg())
	cancel(io.ErrClosedPipe)
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
		{"the deadline passed", late, context.DeadlineExceeded, breaker.Failure},
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
		b := breaker.New("b", breaker.Config{Probes: 1, Classify: func(err error) breaker.Outcome {
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

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		config breaker.Config
		want   string
	}{
		{breaker.Config{FailureRate: math.NaN()}, "breaker: FailureRate is NaN, must be above 0 and at most 1, or Off"},
		{breaker.Config{FailureRate: -0.5}, "breaker: FailureRate is -0.5, must be above 0 and at most 1, or Off"},
		{breaker.Config{FailureRate: 1.01}, "breaker: FailureRate is 1.01, must be above 0 and at most 1, or Off"},
		{breaker.Config{FailureRate: math.Inf(1)}, "breaker: FailureRate is +Inf, must be above 0 and at most 1, or Off"},
		{breaker.Config{MinCalls: -2}, "breaker: MinCalls is -2, must be at least 1"},
		{breaker.Config{Window: -time.Second}, "breaker: Window and Buckets: window: Span is -1s, must lie between 1ms and 720h0m0s"},
		{breaker.Config{Buckets: -1}, "breaker: Window and Buckets: window: Buckets is -1, must lie between 1 and 100000"},
		{breaker.Config{Cooldown: -2}, "breaker: Cooldown is -2ns, must not be negative, or Off"},
		{breaker.Config{Probes: -1}, "breaker: Probes is -1, must lie between 1 and 10000"},
		{breaker.Config{Probes: 10_001}, "breaker: Probes is 10001, must lie between 1 and 10000"},
		{breaker.Config{ProbeTimeout: -1}, "breaker: ProbeTimeout is -1ns, must not be negative"},
		{breaker.Config{MinCalls: -2, Probes: -1}, "breaker: MinCalls is -2, must be at least 1\nbreaker: Probes is -1, must lie between 1 and 10000"},
	} {
		require.EqualError(t, c.config.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { breaker.New("b", c.config) })
	}
	require.NoError(t, breaker.Config{}.Validate())
	require.NoError(t, breaker.Config{FailureRate: breaker.Off, MinCalls: 1, Cooldown: breaker.Off}.Validate())
}

func TestCooldownOffTriesWithTheNextCall(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 1})
	run(t, b, 1, fail)
	require.Equal(t, breaker.HalfOpen, b.State())
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Closed, b.State())
}

func TestEndlessCooldownDoesNotOverflow(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: math.MaxInt64, ProbeTimeout: math.MaxInt64})
	run(t, b, 1, fail)
	require.Equal(t, breaker.Open, b.State())
	refused(t, b)
}

// TestRealUpstreams makes calls to a server that answers, hangs until after the deadline, closes the
// connection, or panics in its handler.
func TestRealUpstreams(t *testing.T) {
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
	defer server.Close()
	defer close(hang)
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

func TestCallsAllocateNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{FailureRate: breaker.Off})
	o := breaker.New("o", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
	run(t, o, 1, fail)
	tried := breaker.New("t", breaker.Config{Initial: breaker.Shadow, SlowCall: time.Hour, HungCalls: true})
	ctx := bg()
	value := func(context.Context) (int, error) { return 1, errDown }
	for name, f := range map[string]func(){
		"closed, success":  func() { _ = b.Run(ctx, succeed) },
		"closed, failure":  func() { _ = b.Run(ctx, fail) },
		"closed, Do":       func() { _, _ = breaker.Do(ctx, b, value) },
		"open, Run":        func() { _ = o.Run(ctx, succeed) },
		"open, Do":         func() { _, _ = breaker.Do(ctx, o, value) },
		"Allow and Record": func() { p, _ := b.Allow(); p.Record(breaker.Success) },
		"Check when open":  func() { _ = o.Check() },
		"State and Counts": func() { _, _ = b.State(), b.Counts() },
		"Totals when open": func() { _ = o.Totals() },
		"in shadow mode":   func() { _ = tried.Run(ctx, succeed) },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
	}
}

func TestAPermitMakesItsCall(t *testing.T) {
	b := breaker.New("b", breaker.Config{ConsecutiveFailures: 2})
	var permit breaker.Permit
	require.PanicsWithValue(t, "breaker: the permit is used up", func() { _ = permit.Run(bg(), succeed) })
	require.NoError(t, b.Admit(&permit))
	require.PanicsWithValue(t, "breaker: the function to call is nil", func() { _ = permit.Run(bg(), nil) })
	require.NoError(t, permit.Run(bg(), succeed))
	require.EqualValues(t, 1, b.Counts().Successes)
	require.False(t, permit.Record(breaker.Failure), "it is used up")
	require.PanicsWithValue(t, "breaker: the permit is used up", func() { _ = permit.Run(bg(), succeed) })

	permit = breaker.Permit{}
	require.NoError(t, b.AdmitAt(time.Now(), &permit))
	require.PanicsWithValue(t, "x", func() { _ = permit.Run(bg(), func(ctx) error { panic("x") }) })
	require.EqualValues(t, 1, b.Counts().Failures)
	permit = breaker.Permit{}
	require.NoError(t, b.Admit(&permit))
	require.True(t, permit.Record(breaker.Success))
	require.Panics(t, func() { _ = permit.Run(bg(), succeed) })

	for range 2 {
		permit = breaker.Permit{}
		require.NoError(t, b.Admit(&permit))
		require.ErrorIs(t, permit.Run(bg(), fail), errDown)
	}
	permit = breaker.Permit{}
	require.ErrorIs(t, b.Admit(&permit), breaker.ErrOpen)
	require.ErrorIs(t, b.AdmitAt(time.Now(), &permit), breaker.ErrOpen)
	require.False(t, permit.Record(breaker.Success), "what was refused has no permit")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if b.Admit(&permit) == nil {
			t.Fatal("let through")
		}
	}))
}

// AdmitAfter does what AdmitAt does for a closed breaker, and leaves everything else to AdmitAt.
func TestAdmitAfter(t *testing.T) {
	var permit breaker.Permit
	b := breaker.NewAt("x", breaker.Config{SlowCall: time.Second, MinCalls: 3}, modelAt(0))
	require.True(t, b.AdmitAfter(time.Second, &permit))
	require.True(t, permit.RecordAt(modelAt(1500), breaker.Success))
	require.Zero(t, b.CountsAt(modelAt(1500)).Slow, "it took half a second")
	for range 2 {
		permit = breaker.Permit{}
		require.True(t, b.AdmitAfter(2*time.Second, &permit))
		require.True(t, permit.RecordAt(modelAt(3500), breaker.Failure))
	}
	require.EqualValues(t, 2, b.CountsAt(modelAt(3500)).Slow)

	permit = breaker.Permit{}
	require.False(t, b.AdmitAfter(4*time.Second, &permit), "it is open")
	require.False(t, b.AdmitAfter(time.Hour, &permit), "and would be half-open, which is for AdmitAt")
	require.Zero(t, b.CountsAt(modelAt(4000)).Refused)
	require.False(t, permit.Record(breaker.Success), "what was not let through has no permit")

	b = breaker.NewAt("x", breaker.Config{SlowCall: time.Second, HungCalls: true}, modelAt(0))
	require.False(t, b.AdmitAfter(0, &permit), "calls in flight are watched")
	b = breaker.NewAt("x", breaker.Config{Active: true}, modelAt(0))
	require.False(t, b.AdmitAfter(0, &permit), "calls in flight are counted")
}
