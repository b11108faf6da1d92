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

func throughGobreaker() *side {
	b := gobreakerUsers()
	return &side{get: func(ctx context.Context, get fetch, id int) (*User, error) { return gobreakerGet(ctx, b, get, id) }}
}

func throughBreaker(c breaker.Config) *side {
	b := breaker.New("users", c)
	return &side{get: func(ctx context.Context, get fetch, id int) (*User, error) { return breakerGet(ctx, b, get, id) }}
}

func throughOurs() *side {
	b := breakerUsers()
	return &side{get: func(ctx context.Context, get fetch, id int) (*User, error) { return breakerGet(ctx, b, get, id) }}
}

func TestBreakerDoesAsGobreaker(t *testing.T) {
	alike(t, throughGobreaker, throughOurs, outage)
}

func TestErrorsThatAreNoFailuresAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := throughGobreaker(), throughOurs()
		compare(t, theirs, ours, []step{
			{calls: 9, err: errDown},
			{calls: 11, err: ErrNotFound},
			{calls: 5},
			{calls: 7, err: errDown},
			{calls: 3}, // 16 of 32 failed
		})
		require.Equal(t, 32, ours.asked)
	})
}

func TestDefaultsOfGobreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := gobreaker.NewCircuitBreaker[*User](gobreaker.Settings{})
		theirs := &side{get: func(ctx context.Context, get fetch, id int) (*User, error) { return gobreakerGet(ctx, b, get, id) }}
		compare(t, theirs, throughBreaker(likeGobreaker), []step{
			{calls: 5, err: errDown},
			{calls: 1},
			{wait: time.Hour, calls: 5, err: errDown}, // it forgets nothing
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

func TestGobreakerAsksAtFailuresAloneAndOursAtEachResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := throughGobreaker(), throughOurs()
		for _, s := range []*side{theirs, ours} {
			require.Zero(t, refusals(t, s, 10, errDown))
			require.Zero(t, refusals(t, s, 10, nil))
		}
		require.Zero(t, refusals(t, theirs, 1, nil), "the 20th call was no failure")
		require.Equal(t, 1, refusals(t, ours, 1, nil), "10 of 20 failed")
	})
}

func TestGobreakersRequestsHoldWhatIsInFlight(t *testing.T) {
	settings := gobreaker.Settings{ReadyToTrip: func(c gobreaker.Counts) bool { return c.Requests >= 20 && c.TotalFailures >= 10 }}
	theirs := gobreaker.NewTwoStepCircuitBreaker[*User](settings)
	ours := breaker.New("users", breaker.Config{})
	for n := range 20 {
		done, err := theirs.Allow()
		require.NoError(t, err)
		permit, err := ours.Allow()
		require.NoError(t, err)
		if n >= 10 {
			done(errDown)
			permit.Record(breaker.Failure)
		}
	}
	require.Equal(t, gobreaker.StateOpen, theirs.State(), "20 were begun")
	require.Equal(t, breaker.Closed, ours.State(), "10 have ended")
}

func TestGobreakersRequestsHoldWhatIsExcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := throughGobreaker(), throughOurs()
		for _, s := range []*side{theirs, ours} {
			for range 30 {
				givingUp(t, func(ctx context.Context, get fetch) { _, _ = s.get(ctx, get, 7) })
			}
			require.Zero(t, refusals(t, s, 20, errDown))
		}
		require.Zero(t, refusals(t, theirs, 1, errDown), "20 of 50")
		require.Equal(t, 1, refusals(t, ours, 1, errDown), "20 of 20")
	})
}

func TestAProbeThatIsLostStopsGobreakerForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := gobreaker.NewTwoStepCircuitBreaker[*User](gobreaker.Settings{})
		ours := breaker.New("users", likeGobreaker)
		for range 6 {
			done, _ := theirs.Allow()
			done(errDown)
			permit, _ := ours.Allow()
			permit.Record(breaker.Failure)
		}
		time.Sleep(61 * time.Second)
		_, theirErr := theirs.Allow() // and nobody ever calls done
		_, ourErr := ours.Allow()
		require.NoError(t, theirErr)
		require.NoError(t, ourErr)

		time.Sleep(24 * time.Hour)
		_, theirErr = theirs.Allow()
		_, ourErr = ours.Allow()
		require.ErrorIs(t, theirErr, gobreaker.ErrTooManyRequests)
		require.NoError(t, ourErr)
	})
}

func TestGobreakerTakesACallerWhoGivesUpForAFailure(t *testing.T) {
	theirs := gobreaker.NewCircuitBreaker[*User](gobreaker.Settings{})
	ours := breaker.New("users", likeGobreaker)
	for range 6 {
		givingUp(t, func(ctx context.Context, get fetch) { _, _ = gobreakerGet(ctx, theirs, get, 7) })
		givingUp(t, func(ctx context.Context, get fetch) { _, _ = breakerGet(ctx, ours, get, 7) })
	}
	require.Equal(t, gobreaker.StateOpen, theirs.State())
	require.Equal(t, breaker.Closed, ours.State())
}

// givingUp makes a call whose context is cancelled while it goes on.
func givingUp(t *testing.T, call func(ctx context.Context, get fetch)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call(ctx, func(ctx context.Context, _ int) (*User, error) {
		cancel()
		return nil, ctx.Err()
	})
}
