package weir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

var errDown = errors.New("down")

func bg() context.Context { return context.Background() }

func fail(context.Context) error { return errDown }

func TestGateLimitsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("payments", weir.Config{Rate: limiter.PerSecond(10), Burst: 2})
		require.NoError(t, g.Run(bg(), succeed))
		require.NoError(t, g.Run(bg(), succeed))
		err := g.Run(bg(), succeed)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.NotErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 100*time.Millisecond, weir.RetryAfter(err))
		require.Equal(t, "limiter payments: no tokens left (limit 2), retry in 100ms", err.Error())

		time.Sleep(40 * time.Millisecond)
		later := g.Run(bg(), succeed)
		require.Same(t, err, later, "calls that are refused until the same moment share one error")
		require.Equal(t, 160*time.Millisecond, weir.RetryAfter(later), "the first token is for the call before")

		time.Sleep(60 * time.Millisecond)
		require.NoError(t, g.Run(bg(), succeed))
		require.NotSame(t, err, g.Run(bg(), succeed))
		require.Equal(t, window.Counts{Successes: 3}, g.Breaker().Counts(), "the breaker does not count calls that the limiter refuses")
		require.Equal(t, limiter.Stats{Allowed: 3, Refused: 3}, g.Stats())
	})
}

func TestOpenGateSpendsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("payments", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 100, Breaker: breaker.Config{FailureRun: breaker.Off}})
		for range 20 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		require.True(t, g.Tripped())
		require.Equal(t, breaker.Open, g.Breaker().State())
		for range 500 {
			err := g.Run(bg(), succeed)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.NotErrorIs(t, err, limiter.ErrLimited)
			require.Equal(t, time.Second, weir.RetryAfter(err))
		}
		require.Equal(t, 80, g.Limiter().Take(0).Remaining, "an open breaker spends no token")
		require.Equal(t, int64(500), g.Totals().Refused)
	})
}

// Other libraries have this flaw: if one part refuses a call, the call keeps the token or probe
// slot that it got from the other part.
func TestRefusedCallsKeepNeitherTokenNorProbeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 21, Breaker: breaker.Config{Probes: 2, FailureRun: breaker.Off, Recovery: breaker.Off}})
		for range 20 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		time.Sleep(5 * time.Second) // half-open, with 6 tokens
		for range 6 {
			require.True(t, g.Limiter().Take(1).OK)
		}
		for range 10 { // over the limit: no probe slot is taken
			require.ErrorIs(t, g.Run(bg(), succeed), limiter.ErrLimited)
		}
		for series, v := range g.Breaker().Observe {
			if series.Instrument.Name == "weir.breaker.abandoned_probes" {
				require.Zero(t, v)
			}
		}

		time.Sleep(3 * time.Second) // three tokens
		first, err := g.Breaker().Allow()
		require.NoError(t, err)
		second, err := g.Breaker().Allow()
		require.NoError(t, err)
		for range 10 { // no probe slot is free: no token is spent
			require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
		}
		require.Equal(t, 3, g.Limiter().Take(0).Remaining)
		require.True(t, first.Record(bg(), nil, breaker.Success))
		require.True(t, second.Record(bg(), nil, breaker.Success))
		require.NoError(t, g.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, g.Breaker().State())
	})
}

// opensBetween is a limiter that opens the breaker when a token is taken, which is after the check
// of the breaker and before its permit is acquired.
type opensBetween struct {
	*limiter.TokenBucket
	open func()
}

func (l opensBetween) TakeAt(t time.Time, n int) limiter.Result {
	r := l.TokenBucket.TakeAt(t, n)
	if n > 0 {
		l.open()
	}
	return r
}

func TestTokenIsRefundedIfTheBreakerOpensMeanwhile(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
	l := opensBetween{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 5}), func() { _ = b.Run(bg(), fail) }}
	g := weir.Join("g", weir.Parts{Breaker: b, Limiter: l})
	require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
	require.Equal(t, 5, l.Take(0).Remaining)
	require.Zero(t, g.Stats())
}

func TestGateWithoutALimit(t *testing.T) {
	g := weir.New("g", weir.Config{})
	require.Nil(t, g.Limiter())
	for range 10_000 {
		require.NoError(t, g.Run(bg(), succeed))
	}
	require.Zero(t, g.Stats())
	for s := range g.Observe {
		require.False(t, strings.HasPrefix(s.Instrument.Name, "weir.limiter"), s.Instrument.Name)
	}
}

func TestAllowAndRecord(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2, Breaker: breaker.Config{ConsecutiveFailures: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	permit, err := g.Allow(ctx)
	require.NoError(t, err)
	require.True(t, permit.Done(ctx, errDown))
	_, err = g.Allow(ctx)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.EqualValues(t, 1, g.Stats().Allowed, "an open breaker spends no token")
	cancel()
	_, err = g.Allow(ctx)
	require.Equal(t, context.Canceled, err)
}

func TestAllowOverTheLimitReturnsNoPermit(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1})
	permit, err := g.Allow(t.Context())
	require.NoError(t, err)
	require.True(t, permit.Record(bg(), nil, breaker.Success))
	permit, err = g.Allow(t.Context())
	require.ErrorIs(t, err, limiter.ErrLimited)
	require.False(t, permit.Record(bg(), nil, breaker.Success))
	require.EqualValues(t, 1, g.Totals().Successes)
}

func TestCallsAllocateNothing(t *testing.T) {
	free := weir.New("g", weir.Config{Rate: limiter.PerSecond(1e9), Burst: 1 << 30})
	limited := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour)})
	down := weir.New("g", weir.Config{Rate: limiter.PerSecond(1e9), Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Hour}})
	_ = down.Run(bg(), fail)
	ctx := bg()
	value := func(context.Context) (int, error) { return 1, nil }
	instead := func(context.Context, error) (int, error) { return 2, nil }
	for name, f := range map[string]func(){
		"allowed":        func() { _ = free.Run(ctx, succeed) },
		"allowed, Do":    func() { _, _ = weir.Do(ctx, free, value) },
		"limited":        func() { _ = limited.Run(ctx, succeed) },
		"limited, DoOr":  func() { _, _ = weir.DoOr(ctx, limited, value, instead) },
		"open":           func() { _ = down.Run(ctx, succeed) },
		"open, Do":       func() { _, _ = weir.Do(ctx, down, value) },
		"what it counts": func() { _, _ = free.Totals(), free.Stats() },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
	}
}

func TestDoOrCallsFallbackForRefusedCalls(t *testing.T) {
	g := weir.New("g", weir.Config{Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Hour}})
	call := func(err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return "service", err }
	}
	cached := func(_ context.Context, refusal error) (string, error) {
		require.ErrorIs(t, refusal, breaker.ErrOpen)
		return "cache", nil
	}
	v, err := weir.DoOr(bg(), g, call(nil), cached)
	require.NoError(t, err)
	require.Equal(t, "service", v)
	v, err = weir.DoOr(bg(), g, call(errDown), cached)
	require.Equal(t, errDown, err, "the fallback is not called for a failure")
	require.Equal(t, "service", v)
	v, err = weir.DoOr(bg(), g, call(nil), cached)
	require.NoError(t, err)
	require.Equal(t, "cache", v)

	cancelled, cancel := context.WithCancel(bg())
	cancel()
	v, err = weir.DoOr(cancelled, g, call(nil), cached)
	require.Equal(t, context.Canceled, err)
	require.Empty(t, v)
}

func TestDoneContextTakesNothing(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 3, MaxWait: time.Hour})
	ctx, cancel := context.WithCancel(bg())
	cancel()
	require.Equal(t, context.Canceled, g.Run(ctx, succeed))
	require.Equal(t, 3, g.Limiter().Take(0).Remaining)
	require.Zero(t, g.Stats())
	require.Zero(t, g.Totals())
}

func TestPanickingAndNilFunctions(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 3})
	const missing = "weir: the function to call is nil"
	require.PanicsWithValue(t, missing, func() { _ = g.Run(bg(), nil) })
	require.PanicsWithValue(t, missing, func() { _, _ = weir.Do[int](bg(), g, nil) })
	require.PanicsWithValue(t, missing, func() {
		_, _ = weir.DoOr(bg(), g, func(context.Context) (int, error) { return 0, nil }, nil)
	})
	require.PanicsWithValue(t, missing, func() { _, _ = weir.DoResult(bg(), g, nil, byStatus) })
	require.PanicsWithValue(t, missing, func() {
		_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { return 0, nil }, nil)
	})
	require.Equal(t, 3, g.Limiter().Take(0).Remaining)
	require.PanicsWithValue(t, "boom", func() { _ = g.Run(bg(), func(context.Context) error { panic("boom") }) })
	require.PanicsWithValue(t, "boom", func() {
		_, _ = weir.Do(bg(), g, func(context.Context) (int, error) { panic("boom") })
	})
	require.Equal(t, int64(2), g.Breaker().Counts().Failures)
}

func TestRetryAfterReturnsTheWait(t *testing.T) {
	require.Zero(t, weir.RetryAfter(nil))
	require.Zero(t, weir.RetryAfter(io.EOF))
	e := &limiter.LimitedError{Until: time.Now().Add(time.Hour)}
	wait := weir.RetryAfter(errors.Join(io.EOF, fmt.Errorf("pay: %w", e)))
	require.InDelta(t, float64(time.Hour), float64(wait), float64(time.Minute))
	require.Equal(t, limiter.Never, weir.RetryAfter(&limiter.LimitedError{}))
}

// zeroRetryAfter is a refusal whose RetryAfter is 0.
type zeroRetryAfter struct{}

func (zeroRetryAfter) Take(n int) limiter.Result { return limiter.Result{OK: n == 0, Limit: 1} }

// A caller that waits for RetryAfter and retries does not spin.
func TestRetryAfterOfARefusalIsNeverZero(t *testing.T) {
	g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: zeroRetryAfter{}})
	for name, err := range map[string]error{
		"a limiter that does not know": g.Run(bg(), succeed),
		"a limit whose time has come":  &limiter.LimitedError{Until: time.Now().Add(-time.Hour)},
		"a forced-open breaker":        weir.New("g", weir.Config{Breaker: breaker.Config{Force: breaker.ForcedOpen}}).Run(bg(), succeed),
	} {
		require.ErrorIs(t, err, weir.ErrRefused, name)
		require.GreaterOrEqual(t, weir.RetryAfter(err), time.Millisecond, name)
	}
	require.Zero(t, weir.RetryAfter(retryAfterError(0)), "not a refusal")
	require.Equal(t, time.Microsecond, weir.RetryAfter(retryAfterError(time.Microsecond)))
}

func TestConfigValidateNamesAllFaults(t *testing.T) {
	for _, c := range []struct {
		config weir.Config
		want   string
	}{
		{weir.Config{MaxWait: -1}, "weir: MaxWait is -1ns, must be at least 0"},
		{weir.Config{MaxWait: 1}, "weir: MaxWait is 1ns, must be 0 without a Rate, a MaxConcurrent and Adaptive"},
		{weir.Config{Adaptive: true, MaxConcurrent: -1}, "weir: MaxConcurrent is -1, must be between 1 and 1000000 (or 0 for no bound)"},
		{weir.Config{Adaptive: true, MaxConcurrent: 1_000_001}, "weir: MaxConcurrent is 1000001, must be between 1 and 1000000 (or 0 for no bound)"},
		{weir.Config{MaxConcurrent: -1}, "weir: MaxConcurrent is -1, must be between 1 and 1000000 (or 0 for no bound)"},
		{weir.Config{MaxConcurrent: 1_000_001, Burst: 1}, "weir: MaxConcurrent is 1000001, must be between 1 and 1000000 (or 0 for no bound)\nweir: Burst is 1, must be 0 without a Rate"},
		{weir.Config{Burst: 1}, "weir: Burst is 1, must be 0 without a Rate"},
		{weir.Config{Breaker: breaker.Config{FailureRate: 2}}, "weir: Breaker: breaker: FailureRate is 2, must be above 0 and at most 1, or Off"},
	} {
		require.EqualError(t, c.config.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { weir.New("g", c.config) })
	}
	for _, bad := range []limiter.Rate{limiter.PerSecond(math.NaN()), limiter.PerSecond(-1), limiter.PerSecond(math.Inf(1)), limiter.PerSecond(0)} {
		require.ErrorContains(t, weir.Config{Rate: bad}.Validate(), "weir: limiter: ")
	}
	require.NoError(t, weir.Config{}.Validate())
}

// byStatus judges a call by its value, like the status of an HTTP response.
func byStatus(status int, err error) breaker.Outcome {
	switch {
	case err != nil || status >= 500:
		return breaker.Failure
	case status == 499:
		return breaker.Ignored
	}
	return breaker.Success
}

// retryAfterError is an error with a RetryAfter method.
type retryAfterError time.Duration

func (retryAfterError) Error() string               { return "busy" }
func (a retryAfterError) RetryAfter() time.Duration { return time.Duration(a) }

func TestDoResultJudgesByValueAndError(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		err    error
		want   string // successes, failures, ignored
	}{
		"a good status":                {200, nil, "1 0 0"},
		"a bad status":                 {503, nil, "0 1 0"},
		"a status that says nothing":   {499, nil, "0 0 1"},
		"an error":                     {0, errDown, "0 1 0"},
		"a refusal of an inner guard":  {0, fmt.Errorf("inner: %w", weir.ErrRefused), "0 0 1"},
		"an error that asks to wait":   {0, retryAfterError(time.Hour), "0 1 0"},
		"an error whose wait is below": {0, retryAfterError(-1), "0 1 0"},
	} {
		g := weir.New("g", weir.Config{Breaker: breaker.Config{Classify: func(error) breaker.Outcome { panic("asked") }}})
		status, err := weir.DoResult(bg(), g, func(context.Context) (int, error) { return c.status, c.err }, byStatus)
		require.Equal(t, c.status, status, name)
		require.Equal(t, c.err, err, name)
		got := g.Totals()
		require.Equal(t, c.want, fmt.Sprint(got.Successes, got.Failures, got.Ignored), name)
	}
}

func TestDoResultIgnoresCancelledCalls(t *testing.T) {
	g := weir.New("g", weir.Config{})
	ctx, cancel := context.WithCancel(bg())
	_, err := weir.DoResult(ctx, g, func(context.Context) (int, error) { cancel(); return 0, errDown }, byStatus)
	require.ErrorIs(t, err, errDown)
	require.EqualValues(t, 1, g.Totals().Ignored)
}

// A failure with a RetryAfter method extends the cooldown.
func TestDoResultObeysTheRetryAfterOfAFailure(t *testing.T) {
	g := weir.New("g", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1, MaxRetryAfter: time.Hour}})
	_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { return 0, retryAfterError(time.Hour) }, byStatus)
	err := g.Run(bg(), succeed)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.Greater(t, weir.RetryAfter(err), 59*time.Minute)
}

func TestDoResultOfAPanickingFunction(t *testing.T) {
	g := weir.New("g", weir.Config{})
	require.PanicsWithValue(t, "boom", func() {
		_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { panic("boom") }, byStatus)
	})
	require.EqualValues(t, 1, g.Totals().Failures)
	require.PanicsWithValue(t, "judge", func() {
		_, _ = weir.DoResult(bg(), g, func(context.Context) (int, error) { return 0, nil },
			func(int, error) breaker.Outcome { panic("judge") })
	})
	require.EqualValues(t, 1, g.Totals().Ignored, "a judge that panics gives no outcome")
	ctx, cancel := context.WithCancel(bg())
	require.Panics(t, func() {
		_, _ = weir.DoResult(ctx, g, func(context.Context) (int, error) { cancel(); panic("boom") }, byStatus)
	})
	require.EqualValues(t, 2, g.Totals().Ignored, "the caller cancelled")
}

// A deadline that is shorter than the service usually takes says nothing about the service, in
// whatever way a call is judged, and with or without something that is released at its end.
func TestEveryFormIgnoresDeadlinesThatAreTooShort(t *testing.T) {
	late := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	for name, call := range map[string]func(context.Context, *weir.Gate) error{
		"Do": func(ctx context.Context, g *weir.Gate) error { _, err := weir.Do(ctx, g, late); return err },
		"DoResult": func(ctx context.Context, g *weir.Gate) error {
			_, err := weir.DoResult(ctx, g, late, func(int, error) breaker.Outcome { return breaker.Failure })
			return err
		},
		"Done": func(ctx context.Context, g *weir.Gate) error {
			permit, err := g.Allow(ctx)
			if err != nil {
				return err
			}
			_, err = late(ctx)
			require.True(t, permit.Done(ctx, err))
			return err
		},
	} {
		for _, c := range []weir.Config{{}, {MaxConcurrent: 5}, {RefuseHopeless: true}} {
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", c)
				for range 100 {
					_ = g.Run(t.Context(), func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
				}
				ctx, cancel := context.WithTimeout(t.Context(), 49*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, call(ctx, g), context.DeadlineExceeded, name)
				require.EqualValues(t, 1, g.Totals().Ignored, name)
			})
		}
	}
}

func TestDoResultAllocatesNothing(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1e6), Burst: 1 << 30})
	fn := func(context.Context) (int, error) { return 200, nil }
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = weir.DoResult(bg(), g, fn, byStatus) }))
}

// limiterOnly is a limiter that is not a WaitLimiter and cannot be held.
type limiterOnly struct{ limiter.Limiter }

// gateWithoutRoom returns the gate of a key in a group without room for it.
func gateWithoutRoom(c weir.Config) *weir.Gate {
	g := hosts(weir.GroupConfig{MaxKeys: 2, Gate: c})
	for i := range 10 {
		_ = g.Get(fmt.Sprint("busy", i)).Run(bg(), fail)
	}
	return g.Get("late")
}

// everyGate returns a gate of each kind. None refuses a call unless it is held.
func everyGate() map[string]*weir.Gate {
	rate := weir.Config{Rate: limiter.PerSecond(1000)}
	in := func(s breaker.State) weir.Config { return weir.Config{Breaker: breaker.Config{Force: s}} }
	gates := map[string]*weir.Gate{
		"the zero config":               weir.New("g", weir.Config{}),
		"a rate":                        weir.New("g", rate),
		"an unlimited rate":             weir.New("g", weir.Config{Rate: limiter.Unlimited()}),
		"latency":                       weir.New("g", weir.Config{Breaker: breaker.Config{Latency: true}}),
		"a shadow breaker":              weir.New("g", in(breaker.Shadow)),
		"a breaker that is forced shut": weir.New("g", in(breaker.ForcedClosed)),
		"a breaker that is disabled":    weir.New("g", in(breaker.Disabled)),
		"joined, no limiter":            weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{})}),
		"a key":                         hosts(weir.GroupConfig{}).Get("a"),
		"a key with a rate":             hosts(weir.GroupConfig{Gate: rate}).Get("a"),
		"a key without room":            gateWithoutRoom(weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 1}}),
		"a key without room, a rate":    gateWithoutRoom(rate),
		"a rate, and time to wait":      weir.New("g", weir.Config{Rate: limiter.PerSecond(1000), MaxWait: time.Second}),
		"slots":                         weir.New("g", weir.Config{MaxConcurrent: 1}),
		"slots, and time to wait":       weir.New("g", weir.Config{MaxConcurrent: 1, MaxWait: time.Second}),
		"slots and a rate":              weir.New("g", weir.Config{MaxConcurrent: 1, Rate: limiter.PerSecond(1000)}),
		"slots, timed calls":            weir.New("g", weir.Config{MaxConcurrent: 1, Breaker: breaker.Config{SlowCall: time.Minute}}),
		"a key with slots":              hosts(weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1}}).Get("a"),
		"a key with slots and a rate":   hosts(weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 1, Rate: limiter.PerSecond(1000)}}).Get("a"),
		"a key without room, slots":     gateWithoutRoom(weir.Config{MaxConcurrent: 1}),
	}
	for name, c := range map[string]weir.Config{
		"slots":                           {},
		"slots, and time to wait":         {MaxWait: time.Second},
		"slots and a rate":                {Rate: limiter.PerSecond(1000)},
		"slots, a rate, and time to wait": {Rate: limiter.PerSecond(1000), MaxWait: time.Second},
		"slots, timed calls":              {Breaker: breaker.Config{SlowCall: time.Minute}},
	} {
		c.Adaptive, c.MaxConcurrent = true, 1
		gates["adaptive "+name] = weir.New("g", c)
		gates["a key with adaptive "+name] = hosts(weir.GroupConfig{Gate: c}).Get("a")
		gates["a key without room, adaptive "+name] = gateWithoutRoom(c)
		c.RefuseHopeless = true
		gates["hopeless calls refused, adaptive "+name] = weir.New("g", c)
		gates["a key, hopeless calls refused, adaptive "+name] = hosts(weir.GroupConfig{Gate: c}).Get("a")
		c.Adaptive = false
		gates["hopeless calls refused, "+name] = weir.New("g", c)
	}
	for name, l := range map[string]limiter.Limiter{
		"a bucket":               limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)}),
		"a named bucket":         limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000), Name: "n"}),
		"what cannot be held":    limiterOnly{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)})},
		"a window":               limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 1000, Window: time.Second}),
		"a limiter in the shade": limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "n", Shadow: true}),
	} {
		gates["joined, "+name] = weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: l})
	}
	for name, p := range map[string]weir.Parts{
		"slots":                          {},
		"slots and a bucket":             {Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)})},
		"slots and a remote":             {Remote: newRemote(1000)},
		"slots, a remote, time to wait":  {Remote: newRemote(1000), MaxWait: time.Second},
		"slots and a throttle":           {Throttle: throttle.New("t", throttle.Config{K: 1e9})},
		"slots, a throttle and a bucket": {Throttle: throttle.New("t", throttle.Config{K: 1e9}), Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)})},
	} {
		p.Breaker, p.InFlight = breaker.New("b", breaker.Config{}), inflight.New(inflight.Config{Limit: 1})
		gates["joined, "+name] = weir.Join("g", p)
		p.RefuseHopeless, p.InFlight = true, inflight.New(inflight.Config{Limit: 1})
		gates["joined, hopeless calls refused, "+name] = weir.Join("g", p)
		p.RefuseHopeless, p.InFlight = false, inflight.New(inflight.Config{Limit: 1, Name: "in flight"})
		gates["joined, named "+name] = weir.Join("g", p)
		p.InFlight = inflight.New(inflight.Config{Limit: 1, Adaptive: true})
		gates["joined, adaptive "+name] = weir.Join("g", p)
		p.InFlight = inflight.New(inflight.Config{Limit: 1, Adaptive: true, Name: "in flight"})
		gates["joined, named adaptive "+name] = weir.Join("g", p)
	}
	gates["joined, a remote"] = weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1000)})
	gates["joined, a remote and a bucket, time to wait"] = weir.Join("g", weir.Parts{
		Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1000), MaxWait: time.Second,
		Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1000)}),
	})
	return gates
}

// verbs are the functions that make a call through a gate.
var verbs = map[string]func(ctx context.Context, g *weir.Gate, call func()) error{
	"Run": func(ctx context.Context, g *weir.Gate, call func()) error {
		return g.Run(ctx, func(context.Context) error { call(); return nil })
	},
	"Do": func(ctx context.Context, g *weir.Gate, call func()) error {
		_, err := weir.Do(ctx, g, func(context.Context) (int, error) { call(); return 0, nil })
		return err
	},
	"DoResult": func(ctx context.Context, g *weir.Gate, call func()) error {
		_, err := weir.DoResult(ctx, g, func(context.Context) (int, error) { call(); return 0, nil },
			func(int, error) breaker.Outcome { return breaker.Success })
		return err
	},
	"DoOr": func(ctx context.Context, g *weir.Gate, call func()) error {
		_, err := weir.DoOr(ctx, g, func(context.Context) (int, error) { call(); return 0, nil },
			func(_ context.Context, err error) (int, error) { return 0, err })
		return err
	},
	"Allow": func(ctx context.Context, g *weir.Gate, call func()) error {
		permit, err := g.Allow(ctx)
		if err == nil {
			call()
			permit.Record(bg(), nil, breaker.Success)
		}
		return err
	},
}

// callbacks are the functions of the program that a gate and a group call.
var callbacks = []string{
	"Classify", "Trip", "SharedCounts", "Trace", "DescribeFailure", "OnChange", "Remote", "fn", "fallback", "judge", "String",
	"yield of Observe", "yield of Histograms", "yield of All", "yield of the group's Observe", "yield of the group's Histograms",
}

// callingKey is a key whose text is made by a function.
type callingKey struct {
	name string
	text *func()
}

func (k callingKey) String() string {
	(*k.text)()
	return k.name
}

// guarded is a group, a joined gate with a remote, and their config.
type guarded struct {
	group  *weir.Group[callingKey]
	joined *weir.Gate
	config weir.Config
	keys   []callingKey
}

// useCallbacks makes a group and a joined gate whose callbacks call in with their names, and uses
// them in a way that calls each of them.
func useCallbacks(in func(callback string, g *guarded)) {
	g := &guarded{}
	call := func(callback string) bool { in(callback, g); return true }
	b := breaker.Config{Latency: true, KeepFailures: 3}
	b.Classify = func(err error) breaker.Outcome { call("Classify"); return breaker.DefaultClassify(err) }
	b.Trip = func(window.Counts) (string, bool) { call("Trip"); return "", false }
	b.SharedCounts = func() window.Counts { call("SharedCounts"); return window.Counts{} }
	b.Trace = func(context.Context) (trace, span string) { call("Trace"); return "a", "b" }
	b.DescribeFailure = func(context.Context, error, *breaker.FailedCall) { call("DescribeFailure") }
	b.OnChange = func(breaker.Change) { call("OnChange") }
	g.config = weir.Config{Rate: limiter.PerSecond(100), MaxConcurrent: 5, Adaptive: true, RefuseHopeless: true, Breaker: b}
	g.group = weir.NewGroup[callingKey]("g", weir.GroupConfig{Gate: g.config, ShowKeys: true})
	r := newRemote(1000)
	r.during = func() { call("Remote") }
	g.joined = weir.Join("joined", weir.Parts{Breaker: breaker.New("joined", b), Remote: r})
	text := func() { call("String") }
	g.keys = []callingKey{{"a", &text}, {"b", &text}}

	_ = g.joined.Run(bg(), succeed)
	gate := g.group.Get(g.keys[0])
	_ = gate.Run(bg(), func(context.Context) error { call("fn"); return errUnreachable })
	_ = gate.Run(bg(), succeed)
	_, _ = weir.DoResult(bg(), gate, func(context.Context) (int, error) { return 1, nil }, func(int, error) breaker.Outcome {
		call("judge")
		return breaker.Success
	})
	gate.Observe(func(*stat.Series, float64) bool { return call("yield of Observe") })
	gate.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of Histograms") })
	g.group.All()(func(callingKey, *weir.Gate) bool { return call("yield of All") })
	g.group.Observe(func(*stat.Series, float64) bool { return call("yield of the group's Observe") })
	g.group.Histograms(func(*stat.Series, stat.Histogram) bool { return call("yield of the group's Histograms") })
	gate.Hold(time.Second)
	_, _ = weir.DoOr(bg(), gate, func(context.Context) (int, error) { return 1, nil }, func(context.Context, error) (int, error) {
		call("fallback")
		return 0, nil
	})
	gate.Breaker().OpenFor(time.Minute)
}

// useEverything calls the methods of the group and the gates.
func useEverything(g *guarded) {
	for _, gate := range []*weir.Gate{g.joined, g.group.Get(g.keys[0]), g.group.Get(g.keys[1])} {
		_ = gate.Run(bg(), func(context.Context) error { return errUnreachable })
		if permit, err := gate.Allow(bg()); err == nil {
			permit.Done(bg(), nil)
		}
		if permit, refund, err := gate.Reserve(bg()); err == nil {
			permit.Record(bg(), nil, breaker.Ignored)
			refund()
		}
		_, _, _ = gate.Stats(), gate.Explain(), gate.Totals()
		_, _, _, _ = gate.Totals(), gate.Tripped(), gate.Limiter(), gate.Name()
		gate.Observe(func(*stat.Series, float64) bool { return true })
		gate.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
		gate.Breaker().OpenFor(0)
		gate.Hold(time.Millisecond)
		_ = gate.Run(bg(), succeed) // refused
		_ = gate.Reconfigure(g.config)
	}
	_, _, _ = g.group.Stats(), g.group.Busiest(3), g.group.Len()
	g.group.Observe(func(*stat.Series, float64) bool { return true })
	g.group.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
	for range g.group.All() {
	}
	_ = g.group.Reconfigure(weir.GroupConfig{Gate: g.config, MaxOpen: 0.5})
	for _, key := range g.keys {
		g.group.Forget(key)
	}
}

// A lock that is held during a callback would block it for ever.
func TestCallbacksMayCallTheGateAndTheGroup(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inside, seen := false, 0
				useCallbacks(func(callback string, g *guarded) {
					if callback != active || inside || seen >= 3 {
						return
					}
					inside = true
					useEverything(g)
					inside = false
					seen++
				})
				require.Positive(t, seen)
			})
		})
	}
}

// While a callback runs, calls of its key and of others go on, and so do all methods.
func TestASlowCallbackDelaysNoOtherCall(t *testing.T) {
	for _, active := range callbacks {
		t.Run(active, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var began atomic.Bool
				end, running := make(chan struct{}), make(chan *guarded, 1)
				go useCallbacks(func(callback string, g *guarded) {
					if callback == active && began.CompareAndSwap(false, true) {
						running <- g
						<-end
					}
				})
				g := <-running
				start := time.Now()
				useEverything(g)
				require.Equal(t, start, time.Now())
				close(end)
			})
		})
	}
}

// Gates are package variables that are used with the real clock, then in two bubbles, each with a
// clock that begins in the year 2000, and then with the real clock again.
func TestAGateStartsAgainWithEachClock(t *testing.T) {
	config := weir.Config{Rate: limiter.PerMinute(1), Burst: 5, MaxConcurrent: 3, MaxWait: time.Second}
	group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: config})
	for name, g := range map[string]*weir.Gate{"gate": weir.New("g", config), "key": group.Get("k")} {
		allowed := func() (n int) {
			for ; g.Run(bg(), succeed) == nil; n++ {
			}
			return n
		}
		inBubble := func(t *testing.T) {
			require.Equal(t, 5, allowed(), "%s: in a bubble", name)
			time.Sleep(time.Hour)
			require.Equal(t, 5, allowed(), "%s: after an hour in the bubble", name)
			g.Hold(time.Hour)
			require.Zero(t, allowed(), name)
			time.Sleep(24 * time.Hour)
			require.Equal(t, 5, allowed(), "%s: after a day in the bubble", name)
			g.Hold(time.Hour)
		}
		require.Equal(t, 5, allowed(), name)
		g.Hold(24 * time.Hour)
		require.Zero(t, allowed(), name)
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
		require.Equal(t, 5, allowed(), "%s: with the real clock", name)
	}
}

// The same for the breakers of gates, of groups and of parts. A call that began in one clock ends
// in the next one.
func TestTheBreakerOfAGateStartsAgainWithEachClock(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, Probes: 1, Cooldown: time.Second, SlowCall: time.Second, Latency: true}
	config := weir.Config{MaxConcurrent: 3, Breaker: c}
	group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: config})
	parts := weir.Parts{Breaker: breaker.New("p", c), Throttle: throttle.New("t", throttle.Config{})}
	for name, g := range map[string]*weir.Gate{
		"gate": weir.New("g", config), "key": group.Get("k"), "parts": weir.Join("p", parts),
	} {
		var begun weir.Permit
		untilOpen := func() (n int) {
			for ; n < 100 && !g.Tripped(); n++ {
				_ = g.Run(bg(), fail)
			}
			return n
		}
		inBubble := func(t *testing.T) {
			begun.Done(bg(), nil) // a permit of the clock before, or the zero permit
			require.False(t, g.Tripped(), name)
			require.NoError(t, g.Run(bg(), succeed), name)
			require.Zero(t, g.Breaker().Counts().Slow, name)
			require.Less(t, untilOpen(), 40, name)
			require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen, name)
			require.LessOrEqual(t, weir.RetryAfter(g.Run(bg(), succeed)), 2*time.Second, name)
			time.Sleep(time.Hour)
			require.NoError(t, g.Run(bg(), succeed), name)
			require.Equal(t, breaker.Closed, g.Breaker().State(), name)
			var err error
			begun, err = g.Allow(bg())
			require.NoError(t, err, name)
			time.Sleep(time.Hour)
			g.Breaker().OpenFor(48 * time.Hour)
		}
		require.NoError(t, g.Run(bg(), succeed), name)
		synctest.Test(t, inBubble)
		synctest.Test(t, inBubble)
	}
}

// A gate forgets the durations of calls when the clock is a new one.
func TestHopelessDeadlinesAreLearnedAnewWithEachClock(t *testing.T) {
	config := weir.Config{RefuseHopeless: true}
	group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: config})
	for name, g := range map[string]*weir.Gate{"gate": weir.New("g", config), "key": group.Get("k")} {
		hopeless := func(t *testing.T) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			err := g.Run(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			_, refused := errors.AsType[*weir.HopelessError](err)
			return refused
		}
		for range 3 {
			synctest.Test(t, func(t *testing.T) {
				for range 2 { // the first may be a test
					require.False(t, hopeless(t), "%s: nothing is known", name)
				}
				for range 100 {
					require.NoError(t, g.Run(t.Context(), func(context.Context) error {
						time.Sleep(50 * time.Millisecond)
						return nil
					}))
				}
				_ = hopeless(t) // one hopeless call per second is a test
				require.True(t, hopeless(t), "%s: calls take 50 ms", name)
			})
		}
		require.False(t, hopeless(t), "%s: with the real clock", name)
	}
}

func succeed(context.Context) error { return nil }

func BenchmarkGateRun(b *testing.B) {
	g := weir.New("g", weir.Config{Rate: limiter.PerSecond(2e9), Burst: 1 << 30})
	ctx := bg()
	b.ReportAllocs()
	for b.Loop() {
		if g.Run(ctx, succeed) != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkGateRunLimited(b *testing.B) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour)})
	ctx := bg()
	_ = g.Run(ctx, succeed)
	b.ReportAllocs()
	for b.Loop() {
		if g.Run(ctx, succeed) == nil {
			b.Fatal("let through")
		}
	}
}

// BenchmarkGateInFlight compares gates with a bound on calls in flight with one without, and with a
// reading of the clock.
func BenchmarkGateInFlight(b *testing.B) {
	for _, c := range []struct {
		name   string
		config weir.Config
	}{
		{"none", weir.Config{}},
		{"fixed", weir.Config{MaxConcurrent: 1000}},
		{"adaptive", weir.Config{Adaptive: true}},
		{"rate", weir.Config{Rate: limiter.PerSecond(2e9), Burst: 1 << 30}},
		{"rate-adaptive", weir.Config{Rate: limiter.PerSecond(2e9), Burst: 1 << 30, Adaptive: true}},
	} {
		g, ctx := weir.New("g", c.config), bg()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g.Run(ctx, succeed) != nil {
					b.Fatal("refused")
				}
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if g.Run(ctx, succeed) != nil {
						b.Error("refused")
					}
				}
			})
		})
	}
	b.Run("time.Since", func(b *testing.B) {
		epoch := time.Now()
		for b.Loop() {
			_ = time.Since(epoch)
		}
	})
}

// BenchmarkGateHopeless compares a gate that refuses hopeless calls with one that keeps a histogram
// of latencies and one that does neither. All calls have a deadline.
func BenchmarkGateHopeless(b *testing.B) {
	ctx, cancel := context.WithTimeout(bg(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		name   string
		config weir.Config
	}{
		{"none", weir.Config{}},
		{"latency", weir.Config{Breaker: breaker.Config{Latency: true}}},
		{"hopeless", weir.Config{RefuseHopeless: true}},
		{"slots", weir.Config{MaxConcurrent: 1000}},
		{"slots-hopeless", weir.Config{MaxConcurrent: 1000, RefuseHopeless: true}},
	} {
		g := weir.New("g", c.config)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g.Run(ctx, succeed) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
	g := weir.New("g", weir.Config{RefuseHopeless: true})
	for range 100 {
		permit, _ := g.Allow(ctx)
		<-time.After(2 * time.Millisecond) // a benchmark runs in real time
		permit.Record(bg(), nil, breaker.Success)
	}
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = g.Run(deadlineSoon{ctx}, succeed)
		}
	})
}

// deadlineSoon is a context whose deadline is always 1 ms away.
type deadlineSoon struct{ context.Context }

func (deadlineSoon) Deadline() (time.Time, bool) { return time.Now().Add(time.Millisecond), true }
