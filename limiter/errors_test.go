package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
)

func TestLimitedErrorMatchesByReason(t *testing.T) {
	targets := []error{limiter.ErrLimited, sentinel.ErrRefused, context.DeadlineExceeded, context.Canceled}
	for reason, want := range map[limiter.Reason][]bool{
		limiter.NoTokens:  {true, true, false, false},
		limiter.OverLimit: {true, true, false, false},
		limiter.QueueFull: {true, true, false, false},
		limiter.PastDue:   {true, true, true, false},
	} {
		err := fmt.Errorf("charging: %w", &limiter.LimitedError{Reason: reason})
		for i, target := range targets {
			require.Equal(t, want[i], errors.Is(err, target), "%q is %q", reason, target)
		}
	}
}

func TestLimitedErrorCountsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := &limiter.LimitedError{Name: "payments", Reason: limiter.NoTokens, Limit: 50, Until: time.Now().Add(2 * sec)}
		require.EqualError(t, err, "limiter payments: no tokens left (limit 50), retry in 2s")
		time.Sleep(1500 * ms)
		require.Equal(t, 500*ms, err.RetryAfter())
		time.Sleep(hour)
		require.Zero(t, err.RetryAfter())
	})
	require.Equal(t, limiter.Never, (&limiter.LimitedError{}).RetryAfter())
}

func requireQueueFull(t *testing.T, err error, name ...any) {
	t.Helper()
	var limited *limiter.LimitedError
	require.ErrorAs(t, err, &limited, name...)
	require.Equal(t, limiter.QueueFull, limited.Reason, name...)
}
