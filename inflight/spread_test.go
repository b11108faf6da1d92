package inflight_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
)

func TestCallersThatAreRefusedTogetherGetDifferentWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := inflight.New(inflight.Config{Limit: 1})
		slot, err := l.TryAcquire(t.Context())
		require.NoError(t, err)
		time.Sleep(400 * time.Millisecond)

		var waits []time.Duration
		for range 1000 {
			_, err := l.TryAcquire(t.Context())
			var full *inflight.FullError
			require.ErrorAs(t, err, &full)
			expected := time.Until(full.Until)
			require.Positive(t, expected)
			wait := full.RetryAfter()
			require.GreaterOrEqual(t, wait, expected, "no caller comes before a slot is expected")
			require.Less(t, wait, 2*expected)
			require.Contains(t, err.Error(), "retry after "+expected.Round(time.Millisecond).String())
			waits = append(waits, wait)
		}
		shares := map[int]bool{}
		for range 20 { // calls that are refused a little later have another error
			time.Sleep(2 * time.Millisecond)
			_, err := l.TryAcquire(t.Context())
			full, ok := errors.AsType[*inflight.FullError](err)
			require.True(t, ok)
			shares[int(100*full.RetryAfter()/time.Until(full.Until))] = true
		}
		require.Greater(t, len(shares), 15)
		slot.Done(t.Context(), nil)
		slices.Sort(waits)
		for i := range len(waits) - 50 {
			require.Greater(t, waits[i+50]-waits[i], 10*time.Millisecond, "no 10 ms has more than 5 % of the callers")
		}
		require.Zero(t, (&inflight.FullError{}).RetryAfter())
		require.Equal(t, time.Second, (&inflight.FullError{Until: time.Now().Add(time.Second)}).RetryAfter(), "an error of the user")
	})
}
