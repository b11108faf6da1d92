package weir_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

var errUnreachable = errors.New("no answer")

// remote stands for a limit outside this process. It is a token bucket that refills in a minute.
type remote struct {
	bucket *limiter.TokenBucket
	during func() // called while a caller waits for the answer
	down   bool
	err    error // returned by Take while it is down
	asked  atomic.Int64
}

func newRemote(tokens int) *remote {
	return &remote{
		bucket: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(float64(tokens)), Burst: tokens}),
		during: func() {},
		err:    errUnreachable,
	}
}

func (r *remote) Take(ctx context.Context, n int) (limiter.Result, error) {
	result, _, err := r.Reserve(ctx, n)
	return result, err
}

// Reserve returns a refund that fails if the context is done.
func (r *remote) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	r.asked.Add(1)
	r.during()
	if r.down || ctx.Err() != nil {
		return limiter.Result{}, nil, errors.Join(r.err, ctx.Err())
	}
	taken := limiter.Reserve(r.bucket, n)
	return taken.Result, func(ctx context.Context, n int) error {
		if ctx.Err() == nil {
			taken.Refund(n)
		}
		return ctx.Err()
	}, nil
}

func (r *remote) Wait(ctx context.Context, n int) error {
	if r.down {
		return r.err
	}
	return r.bucket.Wait(ctx, n)
}

// joinedGate is a gate and its parts.
type joinedGate struct {
	*weir.Gate
	local  *limiter.TokenBucket
	remote *remote
}

// join joins a breaker that opens at the first failure, a bucket with 5 tokens and a remote with 3.
func join(maxWait time.Duration) joinedGate {
	j := joinedGate{local: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(5), Burst: 5}), remote: newRemote(3)}
	j.Gate = weir.Join("g", weir.Parts{
		Breaker: breaker.New("b", breaker.Config{ConsecutiveFailures: 1}), Limiter: j.local, Remote: j.remote, MaxWait: maxWait,
	})
	return j
}

// left returns the remaining tokens of the limiter and of the remote.
func (j joinedGate) left() [2]int {
	return [2]int{j.local.Take(0).Remaining, j.remote.bucket.Take(0).Remaining}
}

func TestCallTakesATokenOfLimiterAndRemote(t *testing.T) {
	j := join(0)
	require.NoError(t, j.Run(bg(), succeed))
	require.Equal(t, [2]int{4, 2}, j.left())
	require.Equal(t, limiter.Stats{Allowed: 1}, j.Stats())
}

func TestRefusalOfARemoteTakesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := join(0)
		for range 3 {
			require.NoError(t, j.Run(bg(), succeed))
		}
		err := j.Run(bg(), succeed)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.InDelta(t, 20, weir.RetryAfter(err).Seconds(), 1)
		require.Equal(t, [2]int{2, 0}, j.left())
		require.Equal(t, limiter.Stats{Allowed: 3, Refused: 1}, j.Stats())
		require.EqualValues(t, 3, j.Breaker().Counts().Calls())
		values, _ := readMetrics(weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1)}))
		require.Contains(t, values, "weir.limiter.requests")
		require.NotContains(t, values, "weir.limiter.limit")
	})
}

// An error of a remote is not a refusal, and the service has not failed.
func TestErrorOfARemoteIsNeitherRefusalNorFailure(t *testing.T) {
	for _, maxWait := range []time.Duration{0, time.Minute} {
		j := join(maxWait)
		j.remote.down = true
		for name, run := range verbs {
			err := run(bg(), j.Gate, func() { t.Error("called") })
			require.ErrorIs(t, err, errUnreachable, name)
			require.NotErrorIs(t, err, weir.ErrRefused, name)
		}
		_, err := weir.DoOr(bg(), j.Gate, func(context.Context) (int, error) { return 0, nil },
			func(context.Context, error) (int, error) { t.Error("fallback"); return 0, nil })
		require.ErrorIs(t, err, errUnreachable)
		require.Equal(t, [2]int{5, 3}, j.left())
		require.Zero(t, j.Totals())
		require.Zero(t, j.Stats())
	}
}

// A remote may have a breaker in front of its store. If that breaker is open, the gate has not
// refused the call.
func TestRefusalInsideARemoteIsNotARefusalOfTheGate(t *testing.T) {
	for _, maxWait := range []time.Duration{0, time.Minute} {
		j := join(maxWait)
		j.remote.down = true
		store := breaker.New("store", breaker.Config{Force: breaker.ForcedOpen})
		_, j.remote.err = store.Allow()
		require.ErrorIs(t, j.remote.err, weir.ErrRefused)
		for name, run := range verbs {
			err := run(bg(), j.Gate, func() { t.Error("called") })
			require.ErrorContains(t, err, "came to no decision", name)
			require.ErrorContains(t, err, j.remote.err.Error(), name)
			require.NotErrorIs(t, err, weir.ErrRefused, name)
			require.NotErrorIs(t, err, breaker.ErrOpen, name)
		}
		require.Zero(t, j.Stats())
	}
}

func TestRemoteIsNotCalledForALocallyRefusedCall(t *testing.T) {
	j := join(0)
	j.Breaker().OpenFor(time.Hour)
	require.ErrorIs(t, j.Run(bg(), succeed), breaker.ErrOpen)
	j.Breaker().Reset()
	for range 5 {
		j.local.Take(1)
	}
	require.ErrorIs(t, j.Run(bg(), succeed), limiter.ErrLimited)
	require.Zero(t, j.remote.asked.Load())
}

// The breaker and holds are checked again after the call of the remote.
func TestTokensAreRefundedIfTheBreakerOpensDuringTheRemoteCall(t *testing.T) {
	j := join(0)
	j.remote.during = func() { j.Breaker().OpenFor(time.Hour) }
	require.ErrorIs(t, j.Run(bg(), succeed), breaker.ErrOpen)
	require.Equal(t, [2]int{5, 3}, j.left())
}

func TestTokensAreRefundedIfAHoldBeginsDuringTheRemoteCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := join(0)
		j.remote.during = func() { j.Hold(time.Hour) }
		err := j.Run(bg(), succeed)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.Equal(t, limiter.Stats{Refused: 1}, j.Stats())
		require.Equal(t, heldFor(t, j.Gate, time.Hour), weir.RetryAfter(err))
		require.Equal(t, 3, j.left()[1])
	})
}

// A remote is not asked while a call waits for the end of a hold.
func TestRemoteIsNotCalledDuringAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote(3)
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{CooldownJitter: breaker.Off}), Remote: r, MaxWait: time.Minute})
		g.Hold(time.Minute)
		time.AfterFunc(59*time.Second, func() { require.Equal(t, 3, r.bucket.Take(0).Remaining) })
		began := time.Now()
		require.NoError(t, g.Run(bg(), succeed))
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, 2, r.bucket.Take(0).Remaining)
	})
}

// Refund works even if the caller has cancelled.
func TestReserveCanGiveItsTokensBack(t *testing.T) {
	j := join(0)
	ctx, cancel := context.WithCancel(bg())
	for range 5 {
		permit, refund, err := j.Reserve(ctx)
		require.NoError(t, err)
		permit.Record(bg(), nil, breaker.Ignored)
		refund()
		refund()
	}
	require.Equal(t, [2]int{5, 3}, j.left())
	g := weir.Join("late", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Remote: lateRemote{j.remote, cancel}})
	permit, refund, err := g.Reserve(ctx)
	require.NoError(t, err)
	permit.Record(bg(), nil, breaker.Ignored)
	refund()
	require.Equal(t, [2]int{5, 3}, j.left())

	_, _, err = g.Reserve(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, refund, err = weir.New("bare", weir.Config{}).Reserve(bg())
	require.NoError(t, err)
	refund()
}

// lateRemote is a remote that decides even though its caller has cancelled.
type lateRemote struct {
	*remote

	giveUp func()
}

func (l lateRemote) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	l.giveUp()
	return l.remote.Reserve(context.WithoutCancel(ctx), n)
}

func TestCallCancelledDuringTheRemoteCallIsCounted(t *testing.T) {
	j := join(0)
	ctx, cancel := context.WithCancel(bg())
	j.remote.during = cancel
	require.ErrorIs(t, j.Run(ctx, succeed), context.Canceled)
	require.Equal(t, limiter.Stats{Cancelled: 1}, j.Stats())
	require.Equal(t, [2]int{5, 3}, j.left())
}

// MaxWait limits the time that a call waits for the limiter and the remote together.
func TestMaxWaitCoversLimiterAndRemote(t *testing.T) {
	for _, c := range []struct {
		maxWait, waits time.Duration
		ok             bool
	}{
		{19 * time.Second, 0, false}, // the remote has a token every 20s
		{20 * time.Second, 20 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := join(c.maxWait)
			for range 3 {
				require.NoError(t, j.Run(bg(), succeed))
			}
			j.local.Take(2) // the next token is there in 12s
			began := time.Now()
			err := j.Run(bg(), succeed)
			require.Equal(t, c.ok, err == nil, "%v", err)
			if c.ok {
				require.Equal(t, c.waits, time.Since(began))
				require.Equal(t, limiter.Stats{Allowed: 3, Waited: 1}, j.Stats())
				return
			}
			require.ErrorIs(t, err, limiter.ErrLimited)
			require.LessOrEqual(t, time.Since(began), c.maxWait)
			require.Equal(t, limiter.Stats{Allowed: 3, Refused: 1}, j.Stats())
			time.Sleep(time.Minute)
			require.Equal(t, [2]int{5, 3}, j.left())
		})
	}
}

func TestCallWaitingForARemoteIsRefusedWhenTheBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := join(time.Hour)
		j.remote.bucket.Take(3)
		time.AfterFunc(time.Second, func() { j.Breaker().OpenFor(time.Hour) })
		began := time.Now()
		require.ErrorIs(t, j.Run(bg(), succeed), breaker.ErrOpen)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, 5, j.left()[0])
	})
}

func TestPartsValidateNamesAllFaults(t *testing.T) {
	b, bucket := breaker.New("b", breaker.Config{}), limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1)})
	for _, good := range []weir.Parts{
		{Breaker: b}, {Breaker: b, Limiter: limiterOnly{bucket}}, {Breaker: b, Limiter: bucket, Remote: newRemote(1), MaxWait: 1},
	} {
		require.NoError(t, good.Validate())
	}
	for _, c := range []struct {
		parts weir.Parts
		want  string
	}{
		{weir.Parts{}, "weir: Breaker is nil, must be a *breaker.Breaker"},
		{weir.Parts{MaxWait: -1}, "weir: Breaker is nil, must be a *breaker.Breaker\nweir: MaxWait is -1ns, must be at least 0"},
		{
			weir.Parts{Breaker: b, Throttle: throttle.New("b", throttle.Config{})},
			`weir: Throttle and Breaker are both named "b", must have different names because their metrics have the same names`,
		},
		{weir.Parts{Breaker: b, MaxWait: 1}, "weir: MaxWait is 1ns, must be 0 without a Limiter, Costs, a Remote and an InFlight"},
		{
			weir.Parts{Breaker: b, Limiter: limiterOnly{bucket}, Remote: struct{ limiter.Remote }{newRemote(1)}, MaxWait: 1},
			"weir: MaxWait is 1ns, must be 0 because Limiter is a weir_test.limiterOnly, which is not a limiter.WaitLimiter\n" +
				"weir: MaxWait is 1ns, must be 0 because Remote is a struct { limiter.Remote }, which is not a limiter.WaitLimiter",
		},
	} {
		require.EqualError(t, c.parts.Validate(), c.want)
		require.PanicsWithError(t, c.want, func() { weir.Join("g", c.parts) })
	}
}

// newThrottledGate returns a gate of which only the throttle refuses calls, and the throttle.
func newThrottledGate(l limiter.Limiter) (*weir.Gate, *throttle.Throttle) {
	th := throttle.New("t", throttle.Config{MaxRefusal: 1})
	return weir.Join("g", weir.Parts{
		Breaker: breaker.New("g", breaker.Config{FailureRate: breaker.Off}), Throttle: th, Limiter: l,
	}), th
}

func TestThrottleRefusesCallsOfAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1_000_000})
		g, th := newThrottledGate(bucket)
		made := int64(0)
		for range 1000 {
			err := g.Run(bg(), func(context.Context) error { made++; return errDown })
			if err != errDown { //nolint:errorlint // as it is
				require.ErrorIs(t, err, throttle.ErrRefused)
				require.ErrorIs(t, err, weir.ErrRefused)
				require.Equal(t, time.Second, weir.RetryAfter(err))
			}
		}
		require.Equal(t, window.Totals{Failures: made, Refused: 1000 - made, ConsecutiveFailures: made}, th.Totals())
		require.Positive(t, th.Totals().Refused)
		require.GreaterOrEqual(t, made, int64(20))
		require.Equal(t, made, g.Totals().Failures)
		require.Zero(t, g.Totals().Refused, "the breaker has refused no call")
		require.Equal(t, 1_000_000-int(made), bucket.Take(0).Remaining, "calls that the throttle refuses spend no token")
	})
}

func TestThrottleRecordsEachCallOnce(t *testing.T) {
	gone, cancel := context.WithCancel(bg())
	for name, call := range map[string]func(*weir.Gate){
		"Run": func(g *weir.Gate) { _ = g.Run(bg(), fail) },
		"Do":  func(g *weir.Gate) { _, _ = weir.Do(bg(), g, func(context.Context) (int, error) { return 0, errDown }) },
		"DoOr": func(g *weir.Gate) {
			_, _ = weir.DoOr(bg(), g, func(context.Context) (int, error) { return 0, errDown }, noFallback)
		},
		"a panic": func(g *weir.Gate) {
			defer func() { _ = recover() }()
			_ = g.Run(bg(), func(context.Context) error { panic("boom") })
		},
		"Record": func(g *weir.Gate) {
			p, _ := g.Allow(bg())
			p.Record(bg(), nil, breaker.Failure)
			p.Record(bg(), nil, breaker.Success)
		},
		"Done": func(g *weir.Gate) {
			p, _ := g.Allow(bg())
			defer p.Record(bg(), nil, breaker.Success)
			p.Done(bg(), errDown)
		},
		"late, as the breaker was reset": func(g *weir.Gate) {
			p, _ := g.Allow(bg())
			g.Breaker().Force(breaker.ForcedOpen, "")
			p.Record(bg(), nil, breaker.Failure)
		},
	} {
		for _, l := range []limiter.Limiter{nil, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1)})} {
			g, th := newThrottledGate(l)
			call(g)
			require.Equal(t, window.Totals{Failures: 1, ConsecutiveFailures: 1}, th.Totals(), name)
		}
	}
	g, th := newThrottledGate(nil)
	_ = g.Run(gone, func(context.Context) error { cancel(); return errDown })
	require.Equal(t, window.Totals{Ignored: 1}, th.Totals())
}

func TestThrottleDoesNotCountCallsRefusedByOthers(t *testing.T) {
	g, th := newThrottledGate(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour)}))
	require.NoError(t, g.Run(bg(), succeed))
	require.ErrorIs(t, g.Run(bg(), succeed), limiter.ErrLimited)
	g.Breaker().Force(breaker.ForcedOpen, "")
	require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
	require.Equal(t, window.Totals{Successes: 1}, th.Totals())
}

func TestGateWithAThrottleAllocatesNothing(t *testing.T) {
	g, _ := newThrottledGate(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(2e9), Burst: 1 << 30}))
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = g.Run(bg(), fail) }))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if p, err := g.Allow(bg()); err == nil {
			p.Record(bg(), nil, breaker.Success)
		}
	}))
}

func noFallback(context.Context, error) (int, error) { return 0, nil }
