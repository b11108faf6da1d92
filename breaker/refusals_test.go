package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

func TestARefusalIsIgnoredHoweverItIsReturned(t *testing.T) {
	open := breaker.New("inner", breaker.Config{Initial: breaker.ForcedOpen})
	for _, refusal := range []error{
		sentinel.ErrRefused, breaker.ErrOpen, throttle.ErrRefused, limiter.ErrLimited, limiter.ErrQueueFull,
		open.Run(bg(), succeed), &limiter.LimitedError{},
	} {
		for _, err := range []error{refusal, fmt.Errorf("wrapped: %w", refusal), fmt.Errorf("%w: %w", errDown, refusal)} {
			require.ErrorIs(t, err, sentinel.ErrRefused)
			require.Equal(t, breaker.Ignored, breaker.DefaultClassify(err), "%v", err)
			require.Equal(t, breaker.Ignored, breaker.FailOn(errDown)(err), "%v", err)
		}
	}
	require.NotErrorIs(t, breaker.ErrOpen, throttle.ErrRefused)
	require.NotErrorIs(t, breaker.ErrOpen, limiter.ErrLimited)
}

// An error that joins a refusal and a failure matches weir.ErrRefused, as one that words a
// refusal by two errors does.
func TestARefusalIsIgnoredBeforeTheClassifierIsAsked(t *testing.T) {
	for verb, judge := range judged {
		for _, err := range []error{sentinel.ErrRefused, fmt.Errorf("inner: %w", breaker.ErrOpen), throttle.ErrRefused, errors.Join(limiter.ErrLimited, errDown)} {
			call, counts := judge(func(error) breaker.Outcome {
				t.Errorf("%s: the classifier is asked about %v", verb, err)
				return breaker.Failure
			})
			call(bg(), func(context.Context) error { return err })
			require.Equal(t, window.Counts{Ignored: 1}, counts(), "%s, %v", verb, err)
		}
	}
}

func TestAnOuterBreakerStaysClosedWhileAnInnerOneRefuses(t *testing.T) {
	outer := breaker.New("outer", breaker.Config{Classify: func(err error) breaker.Outcome {
		if err != nil {
			return breaker.Failure
		}
		return breaker.Success
	}})
	inner := breaker.New("inner", breaker.Config{Initial: breaker.ForcedOpen})
	for range 100 {
		err := outer.Run(bg(), func(ctx context.Context) error { return inner.Run(ctx, succeed) })
		require.ErrorIs(t, err, breaker.ErrOpen)
	}
	require.Equal(t, breaker.Closed, outer.State())
	require.Equal(t, int64(100), outer.Totals().Ignored)
}

// Calls that are cancelled with the first failure among them, as those of an errgroup, count
// until then.
func TestOfCallsCancelledTogetherTheFirstFailuresCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fanOut := func(of func(context.Context) context.Context) window.Counts {
			b := breaker.New("b", breaker.Config{FailureRate: breaker.Off})
			c, cancel := context.WithCancelCause(bg())
			for i := range 100 {
				go func() {
					_ = b.Run(of(c), func(context.Context) error {
						if i >= 10 {
							<-c.Done()
						}
						return errDown
					})
				}()
			}
			synctest.Wait() // ten have failed, and the others are in flight
			cancel(errDown)
			synctest.Wait()
			return b.Counts()
		}
		require.Equal(t, window.Counts{Failures: 10, Ignored: 90, ConsecutiveFailures: 10},
			fanOut(func(c context.Context) context.Context { return c }))
		require.Equal(t, window.Counts{Failures: 100, ConsecutiveFailures: 100}, fanOut(context.WithoutCancel))
	})
}
