package weir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
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
		require.Equal(t, 60*time.Millisecond, weir.RetryAfter(later))

		time.Sleep(weir.RetryAfter(later))
		require.NoError(t, g.Run(bg(), succeed))
		require.NotSame(t, err, g.Run(bg(), succeed))
		require.Equal(t, window.Counts{Successes: 3}, g.Breaker().Counts(), "the breaker does not count calls that the limiter refuses")
		require.Equal(t, limiter.Stats{Allowed: 3, Refused: 3}, g.Admissions())
	})
}

func TestOpenGateSpendsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("payments", weir.Config{Rate: limiter.PerHour(1), Burst: 100})
		for range 20 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		require.True(t, g.Tripped())
		require.Equal(t, breaker.Open, g.Breaker().State())
		for range 500 {
			err := g.Run(bg(), succeed)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.NotErrorIs(t, err, limiter.ErrLimited)
			require.Equal(t, 5*time.Second, weir.RetryAfter(err))
		}
		require.Equal(t, 80, g.Limiter().Take(0).Remaining, "an open breaker spends no token")
		require.Equal(t, int64(500), g.Totals().Refused)
	})
}

// Flaw K of other libraries: if one part refuses a call, the call keeps its token or probe slot of
// the other.
func TestFlawK_RefusedCallsKeepNeitherTokenNorProbeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 21, Breaker: breaker.Config{Probes: 2}})
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
		require.True(t, first.Record(breaker.Success))
		require.True(t, second.Record(breaker.Success))
		require.NoError(t, g.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, g.Breaker().State())
	})
}

// opensBetween is a limiter that opens the breaker when a token is taken, after the breaker was
// checked and before the permit is acquired.
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
	l := opensBetween{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: 5}), func() { _ = b.Run(bg(), fail) }}
	g := weir.Join("g", weir.Parts{Breaker: b, Limiter: l})
	require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
	require.Equal(t, 5, l.Take(0).Remaining)
	require.Zero(t, g.Admissions())
}

func TestCallsWaitUpToMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: 250 * time.Millisecond})
		start := time.Now()
		var mu sync.Mutex
		var passed []time.Duration
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				err := g.Run(bg(), func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					passed = append(passed, time.Since(start))
					return nil
				})
				if err != nil {
					require.ErrorIs(t, err, limiter.ErrLimited)
					require.True(t, strings.HasPrefix(err.Error(), "limiter g: "), err.Error())
					require.Positive(t, weir.RetryAfter(err))
					refused.Add(1)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}, passed)
		require.Equal(t, int64(2), refused.Load())

		ctx, cancel := context.WithCancel(bg())
		time.AfterFunc(10*time.Millisecond, cancel)
		require.ErrorIs(t, g.Run(ctx, succeed), context.Canceled)
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 2, Refused: 2, Cancelled: 1}, g.Admissions())

		hurried, stop := context.WithTimeout(bg(), time.Millisecond)
		defer stop()
		err := g.Run(hurried, succeed)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, weir.ErrRefused, "the deadline cannot be met, so the call is refused at once")
	})
}

func TestWaitingCallsAreRefusedWhenTheBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 20, MaxWait: time.Hour, Breaker: breaker.Config{MinCalls: 21}})
		for range 19 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		last, err := g.Breaker().Allow() // its failure opens the breaker
		require.NoError(t, err)
		require.NoError(t, g.Run(bg(), func(context.Context) error { return nil }))

		start := time.Now()
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := g.Run(bg(), succeed); errors.Is(err, breaker.ErrOpen) && weir.RetryAfter(err) == 5*time.Second {
					refused.Add(1)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		require.True(t, last.Record(breaker.Failure))
		wg.Wait()
		require.Equal(t, int64(50), refused.Load())
		require.Equal(t, 500*time.Millisecond, time.Since(start), "all are refused at once")
		require.Equal(t, int64(50), g.Totals().Refused)
		require.Equal(t, limiter.Stats{Allowed: 20}, g.Admissions())
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "they took no token")
	})
}

func TestHoldHoldsANamedLimiter(t *testing.T) {
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100)})
	g := weir.Join("g", weir.Parts{Breaker: breaker.New("g", breaker.Config{}), Limiter: limiter.NewJoint(limiter.JointConfig{Limiters: []limiter.Limiter{bucket}, Name: "g"})})
	g.Hold(time.Hour)
	require.False(t, bucket.Take(1).OK)
	values, _ := shown(g)
	require.InDelta(t, 1, values["weir.limiter.period"], 0)
}

// The breaker may have closed again before the waiting call runs.
func TestWaitingCallIsRefusedEvenIfTheBreakerClosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: time.Hour})
		require.NoError(t, g.Run(t.Context(), succeed))
		var err error
		go func() { err = g.Run(t.Context(), succeed) }()
		synctest.Wait()
		g.Breaker().Force(breaker.ForcedOpen)
		g.Breaker().Release()
		synctest.Wait()
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.EqualValues(t, 1, g.Totals().Refused)
		require.Zero(t, g.Admissions().Waiting)
	})
}

func TestGateWithoutALimit(t *testing.T) {
	g := weir.New("g", weir.Config{})
	require.Nil(t, g.Limiter())
	for range 10_000 {
		require.NoError(t, g.Run(bg(), succeed))
	}
	require.Zero(t, g.Admissions())
	for s := range g.Observe {
		require.False(t, strings.HasPrefix(s.Instrument.Name, "weir.limiter"), s.Instrument.Name)
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
	g := weir.New("g", weir.Config{Rate: limiter.PerHour(1), Burst: 3, MaxWait: time.Hour})
	ctx, cancel := context.WithCancel(bg())
	cancel()
	require.Equal(t, context.Canceled, g.Run(ctx, succeed))
	require.Equal(t, 3, g.Limiter().Take(0).Remaining)
	require.Zero(t, g.Admissions())
	require.Zero(t, g.Totals())
}

func TestPanickingAndNilFunctions(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.PerHour(1), Burst: 3})
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

// immediate is a refusal that can be retried at once.
type immediate struct{}

func (immediate) Take(n int) limiter.Result { return limiter.Result{OK: n == 0, Limit: 1} }
func (immediate) Refund(int)                {}

// A caller that waits for RetryAfter and retries does not spin.
func TestRetryAfterOfARefusalIsNeverZero(t *testing.T) {
	g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: immediate{}})
	for name, err := range map[string]error{
		"a limiter that does not know": g.Run(bg(), succeed),
		"a limit whose time has come":  &limiter.LimitedError{Until: time.Now().Add(-time.Hour)},
		"a forced-open breaker":        weir.New("g", weir.Config{Breaker: breaker.Config{Initial: breaker.ForcedOpen}}).Run(bg(), succeed),
	} {
		require.ErrorIs(t, err, weir.ErrRefused, name)
		require.GreaterOrEqual(t, weir.RetryAfter(err), time.Millisecond, name)
	}
	require.Zero(t, weir.RetryAfter(asking(0)), "not a refusal")
	require.Equal(t, time.Microsecond, weir.RetryAfter(asking(time.Microsecond)))
}

func TestConfigValidateNamesAllFaults(t *testing.T) {
	for _, c := range []struct {
		config weir.Config
		want   string
	}{
		{weir.Config{MaxWait: -1}, "weir: MaxWait is -1ns, must be at least 0"},
		{weir.Config{MaxWait: 1}, "weir: MaxWait is 1ns, must be 0 without a Rate"},
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

// Many goroutines make calls that succeed, fail and panic. Each call is counted exactly once.
func TestEveryCallHasOneOutcome(t *testing.T) {
	const callers, calls = 8, 5000
	g := weir.New("g", weir.Config{
		Rate: limiter.PerSecond(1e6), Burst: 1000,
		Breaker: breaker.Config{MinCalls: 5, Window: time.Millisecond, Cooldown: 100 * time.Microsecond},
	})
	var succeeded, failed, panicked, open, limited atomic.Int64
	call := func(i int) {
		defer func() {
			if recover() != nil {
				panicked.Add(1)
			}
		}()
		err := g.Run(bg(), func(context.Context) error {
			switch {
			case i%101 == 0:
				panic("boom")
			case i%3 == 0:
				return errDown
			}
			return nil
		})
		switch {
		case err == nil:
			succeeded.Add(1)
		case errors.Is(err, breaker.ErrOpen):
			open.Add(1)
		case errors.Is(err, limiter.ErrLimited):
			limited.Add(1)
		default:
			failed.Add(1)
		}
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range calls {
				call(i)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(callers*calls), succeeded.Load()+failed.Load()+panicked.Load()+open.Load()+limited.Load())
	total := g.Totals()
	require.Equal(t, succeeded.Load()+failed.Load()+panicked.Load(), total.Calls()+figure(g.Breaker(), "weir.breaker.late_results"))
	require.Equal(t, open.Load(), total.Refused)
	require.Equal(t, limited.Load(), g.Admissions().Refused)
	require.Equal(t, total.Calls()+figure(g.Breaker(), "weir.breaker.late_results"), g.Admissions().Allowed)
}

func TestObserveYieldsBreakerAndLimiterMetrics(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.PerHour(1), Burst: 2})
	for range 3 {
		_ = g.Run(bg(), succeed)
	}
	seen := map[string]float64{}
	for s, v := range g.Observe {
		seen[s.Instrument.Name+" "+strings.Join(s.Values, " ")] = v
	}
	for name, want := range map[string]float64{
		"weir.breaker.calls g success ":     2,
		"weir.limiter.requests g allowed":   2,
		"weir.limiter.requests g refused":   1,
		"weir.limiter.requests g waited":    0,
		"weir.limiter.requests g cancelled": 0,
		"weir.limiter.permits g allowed":    2,
		"weir.limiter.permits g refused":    1,
		"weir.limiter.available g":          0,
		"weir.limiter.limit g":              2,
		"weir.limiter.waiting g":            0,
	} {
		got, there := seen[name]
		require.True(t, there, name)
		require.Equal(t, want, got, name)
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	free := weir.New("g", weir.Config{Rate: limiter.PerSecond(1e9), Burst: 1 << 30})
	limited := weir.New("g", weir.Config{Rate: limiter.PerHour(1)})
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
		"what it counts": func() { _, _, _ = free.Latency(), free.Totals(), free.Admissions() },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
	}
}

func TestObserveYieldsWaitingCallsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: 3 * time.Second})
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 { // at once, after a second, after two
			wg.Go(func() { _ = g.Run(t.Context(), succeed) })
			synctest.Wait()
		}
		wg.Go(func() { _ = g.Run(ctx, succeed) })
		synctest.Wait()
		require.Equal(t, limiter.Stats{Allowed: 1, Waiting: 3}, g.Admissions())
		leave()
		wg.Wait()
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 2, Cancelled: 1}, g.Admissions())
		shown := 0
		for s, h := range g.Histograms {
			shown++
			require.Equal(t, instrument.LimiterWaitDuration, s.Instrument)
			require.EqualValues(t, 2, h.Count())
			require.InDelta(t, 3, h.Sum, 1e-6)
		}
		require.Equal(t, 1, shown)
	})
	for range weir.New("g", weir.Config{Rate: limiter.PerSecond(1)}).Histograms {
		t.Fatal("no call waits")
	}
}

// figure returns the figure of b with that name.
func figure(b *breaker.Breaker, name string) (n int64) {
	for s, v := range b.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}
