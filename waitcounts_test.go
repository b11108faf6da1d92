package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// countedLimiters has the kinds of limiters with statistics. Each has one token a minute.
var countedLimiters = map[string]func() (limiter.Limiter, func() limiter.Stats){
	"TokenBucket": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "l", Rate: limiter.PerMinute(1), Burst: 1})
		return l, l.Stats
	},
	"LeakyBucket": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Name: "l", Rate: limiter.PerMinute(1), Capacity: 2})
		return l, l.Stats
	},
	"FixedWindow": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewFixedWindow(limiter.WindowConfig{Name: "l", Limit: 1, Window: time.Minute})
		return l, l.Stats
	},
	"SlidingWindow": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewSlidingWindow(limiter.WindowConfig{Name: "l", Limit: 1, Window: time.Minute})
		return l, l.Stats
	},
	"SlidingLog": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewSlidingLog(limiter.WindowConfig{Name: "l", Limit: 1, Window: time.Minute})
		return l, l.Stats
	},
	"a key": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewGroup(limiter.GroupConfig[string]{Name: "l", Rate: limiter.PerMinute(1), Burst: 1})
		return l.Get("a"), l.Stats
	},
	"Named": func() (limiter.Limiter, func() limiter.Stats) {
		inner := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: 1})
		l := limiter.NewJoint(limiter.JointConfig{Name: "l"}, inner)
		return l, l.Stats
	},
	"Joint": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "l", Rate: limiter.PerMinute(1), Burst: 1})
		return limiter.NewJoint(limiter.JointConfig{}, l), l.Stats
	},
}

// A limiter counts a call of a gate as one request, even if the call waits.
func TestLimiterCountsAWaitingCallOnce(t *testing.T) {
	for kind, made := range countedLimiters {
		for also, tokens := range map[string]int{"alone": 0, "with a remote": 1000} {
			t.Run(kind+" "+also, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, stats := made()
					var remote limiter.Remote
					if tokens > 0 {
						remote = newRemote(tokens)
					}
					g := weir.Join("g", weir.Parts{
						Breaker: breaker.New("b", breaker.Config{}), Limiter: l, Remote: remote, MaxWait: 2 * time.Minute,
					})
					require.NoError(t, g.Run(bg(), succeed))
					require.NoError(t, g.Run(bg(), succeed))
					const one = int64(1)
					got := stats()
					require.Zero(t, got.Refused)
					require.Equal(t, int64(2), got.Allowed+got.Waited)

					ctx, cancel := context.WithTimeout(bg(), time.Nanosecond)
					defer cancel()
					require.ErrorIs(t, g.Run(ctx, succeed), weir.ErrRefused)
					require.Equal(t, one, stats().Refused)
				})
			})
		}
	}
}

// A call keeps its token of the limiter while it waits for the remote.
func TestLimiterCountsACallWaitingForARemoteOnce(t *testing.T) {
	for kind, made := range countedLimiters {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, stats := made()
				remote := newRemote(1)
				g := weir.Join("g", weir.Parts{
					Breaker: breaker.New("b", breaker.Config{}), Limiter: l, Remote: remote, MaxWait: 10 * time.Minute,
				})
				remote.bucket.Take(1)
				require.NoError(t, g.Run(bg(), succeed))
				got := stats()
				require.Equal(t, int64(1), got.Allowed)
				require.Zero(t, got.Waited)
				require.Zero(t, got.Refused)
				require.Equal(t, limiter.Stats{Waited: 1}, g.Admissions())
			})
		})
	}
}

// As the documentation of CountRefused says, waiting requests do not count.
func TestCountRefusedDoesNotCountWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.Join("g", weir.Parts{
			Breaker: breaker.New("b", breaker.Config{}), MaxWait: time.Minute,
			Limiter: limiter.NewSlidingLog(limiter.WindowConfig{Limit: 2, Window: 10 * time.Second, CountRefused: true}),
		})
		began := time.Now()
		require.NoError(t, g.Run(bg(), succeed))
		time.Sleep(5 * time.Second)
		require.NoError(t, g.Run(bg(), succeed))
		time.Sleep(time.Second)
		require.NoError(t, g.Run(bg(), succeed))
		require.Equal(t, 10*time.Second, time.Since(began), "the first token is free again after 10s")
	})
}

// cancellingRemote is a remote whose caller cancels right after the decision.
type cancellingRemote struct {
	*remote
	giveUp context.CancelFunc
}

func (r cancellingRemote) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	defer r.giveUp()
	return r.remote.Reserve(ctx, n)
}

func TestRemoteIsRefundedEvenIfTheCallerCancelled(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	ctx, cancel := context.WithCancel(bg())
	r := newRemote(3)
	r.during = func() { b.Force(breaker.ForcedOpen) }
	g := weir.Join("g", weir.Parts{Breaker: b, Remote: cancellingRemote{r, cancel}})
	require.ErrorIs(t, g.Run(ctx, succeed), breaker.ErrOpen)
	require.Equal(t, 3, r.bucket.Take(0).Remaining)
}
