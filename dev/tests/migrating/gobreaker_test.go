package migrating

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

func throughGobreaker() *comparedProgram {
	b := gobreakerUsers()
	return &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) { return gobreakerGet(ctx, b, get, id) }}
}

func throughBreaker(c breaker.Config) *comparedProgram {
	b := breaker.New("users", c)
	return &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) { return breakerGet(ctx, b, get, id) }}
}

func throughWeir() *comparedProgram {
	b := breakerUsers()
	return &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) { return breakerGet(ctx, b, get, id) }}
}

func TestBreakerBehavesLikeGobreaker(t *testing.T) {
	compareInBubble(t, throughGobreaker, throughWeir, outageScript)
}

func TestAcceptedErrorsLikeGobreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, own := throughGobreaker(), throughWeir()
		compare(t, peer, own, []step{
			{calls: 9, err: errDown},
			{calls: 11, err: ErrNotFound},
			{calls: 5},
			{calls: 7, err: errDown},
			{calls: 3}, // 16 of 32 failed
		})
		require.Equal(t, 32, own.asked)
	})
}

func TestDefaultsOfGobreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := gobreaker.NewCircuitBreaker[*User](gobreaker.Settings{})
		peer := &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) { return gobreakerGet(ctx, b, get, id) }}
		compare(t, peer, throughBreaker(likeGobreaker), []step{
			{calls: 5, err: errDown},
			{calls: 1},
			{wait: time.Hour, calls: 5, err: errDown}, // no failure expires
			{calls: 1, err: errDown},
			{calls: 3},
			{wait: 59 * time.Second, calls: 3},
			{wait: 2 * time.Second, calls: 1, err: errDown}, // the probe
			{calls: 3},
			{wait: 61 * time.Second, calls: 1},
			{calls: 3},
		})
	})
}

func TestGobreakerJudgesOnlyAtFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, own := throughGobreaker(), throughWeir()
		for _, s := range []*comparedProgram{peer, own} {
			require.Zero(t, countRefusals(t, s, 10, errDown))
			require.Zero(t, countRefusals(t, s, 10, nil))
		}
		require.Zero(t, countRefusals(t, peer, 1, nil), "gobreaker does not judge the 20th call, a success")
		require.Equal(t, 1, countRefusals(t, own, 1, nil), "10 of 20 failed")
	})
}

func TestGobreakerRequestsIncludeCallsInFlight(t *testing.T) {
	settings := gobreaker.Settings{ReadyToTrip: func(c gobreaker.Counts) bool { return c.Requests >= 20 && c.TotalFailures >= 10 }}
	peer := gobreaker.NewTwoStepCircuitBreaker[*User](settings)
	own := breaker.New("users", breaker.Config{})
	for n := range 20 {
		done, err := peer.Allow()
		require.NoError(t, err)
		permit, err := own.Allow()
		require.NoError(t, err)
		if n >= 10 {
			done(errDown)
			permit.Record(t.Context(), nil, breaker.Failure)
		}
	}
	require.Equal(t, gobreaker.StateOpen, peer.State(), "20 calls began")
	require.Equal(t, breaker.Closed, own.State(), "10 calls ended")
}

func TestGobreakerRequestsIncludeExcludedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, own := throughGobreaker(), throughWeir()
		for _, s := range []*comparedProgram{peer, own} {
			for range 30 {
				cancelDuring(t, func(ctx context.Context, get fetch) { _, _ = s.get(ctx, get, 7) })
			}
			require.Zero(t, countRefusals(t, s, 20, errDown))
		}
		require.Zero(t, countRefusals(t, peer, 1, errDown), "20 of 50 calls failed")
		require.Equal(t, 1, countRefusals(t, own, 1, errDown), "20 of 20 calls failed")
	})
}

func TestALostProbeKeepsGobreakerHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := gobreaker.NewTwoStepCircuitBreaker[*User](gobreaker.Settings{})
		own := breaker.New("users", likeGobreaker)
		for range 6 {
			done, _ := peer.Allow()
			done(errDown)
			permit, _ := own.Allow()
			permit.Record(t.Context(), nil, breaker.Failure)
		}
		time.Sleep(61 * time.Second)
		_, peerErr := peer.Allow() // done is never called
		_, ownErr := own.Allow()
		require.NoError(t, peerErr)
		require.NoError(t, ownErr)

		time.Sleep(24 * time.Hour)
		_, peerErr = peer.Allow()
		_, ownErr = own.Allow()
		require.ErrorIs(t, peerErr, gobreaker.ErrTooManyRequests)
		require.NoError(t, ownErr)
	})
}

func TestGobreakerCountsACancelledCallAsFailure(t *testing.T) {
	peer := gobreaker.NewCircuitBreaker[*User](gobreaker.Settings{})
	own := breaker.New("users", likeGobreaker)
	for range 6 {
		cancelDuring(t, func(ctx context.Context, get fetch) { _, _ = gobreakerGet(ctx, peer, get, 7) })
		cancelDuring(t, func(ctx context.Context, get fetch) { _, _ = breakerGet(ctx, own, get, 7) })
	}
	require.Equal(t, gobreaker.StateOpen, peer.State())
	require.Equal(t, breaker.Closed, own.State())
}

func TestARunWithinATimeLikeGobreaker(t *testing.T) {
	for name, c := range map[string]struct {
		gap   time.Duration
		calls []error
		opens bool
	}{
		"a run":               {time.Second, []error{errDown, errDown, errDown, errDown, errDown}, true},
		"a success in it":     {time.Second, []error{errDown, errDown, errDown, nil, errDown, errDown}, false},
		"too far apart":       {2600 * time.Millisecond, []error{errDown, errDown, errDown, errDown, errDown}, false},
		"after a success":     {time.Second, []error{errDown, nil, errDown, errDown, errDown, errDown, errDown}, true},
		"four after long ago": {time.Second, []error{errDown, errDown, errDown, errDown}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer, own := gobreaker.NewCircuitBreaker[*User](gobreakerRun), breaker.New("users", breakerRun)
				for _, err := range c.calls {
					require.Equal(t, gobreaker.StateClosed, peer.State())
					require.Equal(t, breaker.Closed, own.State())
					time.Sleep(c.gap)
					_, _ = peer.Execute(func() (*User, error) { return nil, err })
					_ = own.Run(t.Context(), func(context.Context) error { return err })
				}
				require.Equal(t, c.opens, peer.State() == gobreaker.StateOpen)
				require.Equal(t, c.opens, own.State() == breaker.Open)
			})
		})
	}
}

func TestGobreakerMissesARunAcrossTheEndOfAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, own := gobreaker.NewCircuitBreaker[*User](gobreakerRun), breaker.New("users", breakerRun)
		time.Sleep(9 * time.Second)
		for range 5 {
			time.Sleep(500 * time.Millisecond)
			_, _ = peer.Execute(func() (*User, error) { return nil, errDown })
			_ = own.Run(t.Context(), func(context.Context) error { return errDown })
		}
		require.Equal(t, gobreaker.StateClosed, peer.State())
		require.Equal(t, breaker.Open, own.State())
	})
}

func TestGobreakerErrorIsTheErrorOfGobreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := gobreaker.NewCircuitBreaker[*User](gobreaker.Settings{})
		own := breaker.New("users", likeGobreaker)
		call := func(fn func() error) {
			t.Helper()
			_, want := peer.Execute(func() (*User, error) { return nil, fn() })
			got := own.Run(t.Context(), func(context.Context) error { return fn() })
			require.Equal(t, want, gobreakerError(got))
		}
		for range 6 {
			call(func() error { return errDown })
		}
		call(func() error { return nil })
		require.EqualError(t, gobreakerError(own.Run(t.Context(), nothing)), "circuit breaker is open")

		time.Sleep(61 * time.Second)
		_, _ = peer.Execute(func() (*User, error) {
			return nil, own.Run(t.Context(), func(context.Context) error { // the probes of both
				call(nil)
				require.EqualError(t, gobreakerError(own.Run(t.Context(), nothing)), "too many requests")
				return nil
			})
		})
		call(func() error { return nil })
	})
}

func nothing(context.Context) error { return nil }

// cancelDuring makes a call whose context is cancelled while it runs.
func cancelDuring(t *testing.T, call func(ctx context.Context, get fetch)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call(ctx, func(ctx context.Context, _ int) (*User, error) {
		cancel()
		return nil, ctx.Err()
	})
}
