package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

func TestARefusalIsIgnoredHoweverItIsReturned(t *testing.T) {
	open := breaker.New("inner", breaker.Config{Force: breaker.ForcedOpen})
	for _, refusal := range []error{
		sentinel.ErrRefused, breaker.ErrOpen, throttle.ErrRefused, limiter.ErrLimited,
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

// An error that joins a refusal and a failure matches weir.ErrRefused, and so does a refusal that
// consists of two errors.
func TestARefusalIsIgnoredBeforeTheClassifierIsCalled(t *testing.T) {
	for verb, judge := range cancellableForms {
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
	inner := breaker.New("inner", breaker.Config{Force: breaker.ForcedOpen})
	for range 100 {
		err := outer.Run(bg(), func(ctx context.Context) error { return inner.Run(ctx, succeed) })
		require.ErrorIs(t, err, breaker.ErrOpen)
	}
	require.Equal(t, breaker.Closed, outer.State())
	require.Equal(t, int64(100), outer.Totals().Ignored)
}

// The calls of an errgroup count until the first failure cancels the others.
func TestFailuresBeforeTheCallsAreCancelledCount(t *testing.T) {
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
			synctest.Wait() // ten calls have failed, and the others are in flight
			cancel(errDown)
			synctest.Wait()
			return b.Counts()
		}
		require.Equal(t, window.Counts{Failures: 10, Ignored: 90, ConsecutiveFailures: 10},
			fanOut(func(c context.Context) context.Context { return c }))
		require.Equal(t, window.Counts{Failures: 100, ConsecutiveFailures: 100}, fanOut(context.WithoutCancel))
	})
}

// A caller that calls time.Sleep(weir.RetryAfter(err)) between its tries must not spin.
func TestEveryRefusalAsksForAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forced := func(c breaker.Config) *breaker.Breaker {
			b := breaker.New("b", c)
			b.Force(breaker.ForcedOpen, "")
			return b
		}
		full := newHalfOpen(t, breaker.Config{Probes: 1, ProbeTimeout: 4 * time.Second})
		_, err := full.Allow()
		require.NoError(t, err)
		gone := breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: breaker.Config{Force: breaker.ForcedOpen, Cooldown: 3 * time.Second}})
		var refusals []*breaker.OpenError
		for name, c := range map[string]struct {
			b    *breaker.Breaker
			want time.Duration
		}{
			"open":                         {newInState(breaker.Config{}, breaker.Open), time.Second},
			"forced open":                  {forced(breaker.Config{}), time.Second},
			"forced open at first":         {breaker.New("b", breaker.Config{Force: breaker.ForcedOpen, Cooldown: time.Minute}), time.Minute},
			"forced open, and no cooldown": {forced(breaker.Config{Cooldown: breaker.Off}), time.Millisecond},
			"a member":                     {gone.Get("a"), 3 * time.Second},
		} {
			err := c.b.Run(bg(), succeed)
			require.ErrorIs(t, err, breaker.ErrOpen, name)
			e, ok := errors.AsType[*breaker.OpenError](err)
			require.True(t, ok, name)
			require.Equal(t, c.want, e.RetryAfter(), name)
			refusals = append(refusals, e)
		}
		for range 100 {
			var e *breaker.OpenError
			require.ErrorAs(t, full.Run(bg(), succeed), &e)
			require.GreaterOrEqual(t, e.RetryAfter(), time.Millisecond)
			refusals = append(refusals, e)
		}
		time.Sleep(time.Hour)
		for _, e := range refusals {
			require.Positive(t, e.RetryAfter(), "%v, when the wait is over", e)
		}
		lone := breaker.New("b", breaker.Config{})
		e, ok := errors.AsType[*breaker.OpenError](lone.Refuse("the gate's reason"))
		require.True(t, ok)
		require.Equal(t, time.Millisecond, e.RetryAfter())
	})
}

func TestClassifiersCompose(t *testing.T) {
	errGone, errOdd := errors.New("gone"), errors.New("odd")
	own := func(err error) breaker.Outcome {
		if errors.Is(err, errOdd) {
			return breaker.Ignored
		}
		return breaker.DefaultClassify(err)
	}
	for name, c := range map[string]struct {
		classify func(error) breaker.Outcome
		want     [4]breaker.Outcome // of no error, errGone, errOdd and errDown
	}{
		"accept":                 {breaker.Accept(errGone), [4]breaker.Outcome{breaker.Success, breaker.Success, breaker.Failure, breaker.Failure}},
		"accept and ignore":      {breaker.Accept(errGone).Ignore(errOdd), [4]breaker.Outcome{breaker.Success, breaker.Success, breaker.Ignored, breaker.Failure}},
		"ignore and accept":      {breaker.Ignore(errOdd).Accept(errGone), [4]breaker.Outcome{breaker.Success, breaker.Success, breaker.Ignored, breaker.Failure}},
		"several at once":        {breaker.Ignore(errOdd, errGone), [4]breaker.Outcome{breaker.Success, breaker.Ignored, breaker.Ignored, breaker.Failure}},
		"the last one decides":   {breaker.Ignore(errOdd).Accept(errOdd), [4]breaker.Outcome{breaker.Success, breaker.Failure, breaker.Success, breaker.Failure}},
		"fail on, and ignore":    {breaker.FailOn(errDown, errOdd).Ignore(errOdd), [4]breaker.Outcome{breaker.Success, breaker.Success, breaker.Ignored, breaker.Failure}},
		"a function":             {breaker.Classifier(own).Accept(errGone), [4]breaker.Outcome{breaker.Success, breaker.Success, breaker.Ignored, breaker.Failure}},
		"nil is DefaultClassify": {breaker.Classifier(nil).Accept(errGone), [4]breaker.Outcome{breaker.Success, breaker.Success, breaker.Failure, breaker.Failure}},
	} {
		for i, err := range []error{nil, fmt.Errorf("wrapped: %w", errGone), errOdd, errDown} {
			require.Equal(t, c.want[i], c.classify(err), "%s: %v", name, err)
		}
		require.Equal(t, breaker.Ignored, c.classify(breaker.ErrOpen), "%s: a refusal", name)
	}
}
