package migrating

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

func TestAnAbandonedCallCountsAsFailureAndKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("users", breaker.Config{ConsecutiveFailures: 3})
		began, hangs := time.Now(), func() (*User, error) { time.Sleep(time.Minute); return &User{7}, nil }
		for n := range 3 {
			_, err := lookUp(t.Context(), b, hangs)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Duration(n+1)*time.Second, time.Since(began))
			require.Equal(t, n+1, running.InFlight())
		}
		_, err := lookUp(t.Context(), b, hangs)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, int64(3), b.Counts().Failures)

		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, running.InFlight())
		require.Zero(t, b.Totals().Successes, "the results of abandoned calls do not count")
	})
}

func TestACallThatItsCallerAbandonsIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("users", breaker.Config{ConsecutiveFailures: 1})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		_, err := lookUp(ctx, b, func() (*User, error) { time.Sleep(time.Minute); return nil, nil })
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, breaker.Closed, b.State())
		time.Sleep(time.Minute)
	})
}

func TestAbandonedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := inflight.New(inflight.Config{Limit: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		hangs := func() (*User, error) { time.Sleep(time.Minute); return &User{7}, nil }
		for range 2 {
			go func() { _, _ = abandon(ctx, slots, hangs) }()
		}
		time.Sleep(2 * time.Second)
		_, err := abandon(t.Context(), slots, hangs)
		require.ErrorIs(t, err, inflight.ErrFull)
		time.Sleep(time.Minute)
		user, err := abandon(t.Context(), slots, hangs)
		require.NoError(t, err)
		require.Equal(t, &User{7}, user)
	})
}
