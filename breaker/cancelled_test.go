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
	"github.com/weir-go/weir/window"
)

// cancelErrors are errors of cancelled calls, from clients that do not return the error of the
// context.
var cancelErrors = map[string]error{
	"the context's own":          context.Canceled,
	"wrapped":                    fmt.Errorf("get: %w", context.Canceled),
	"as gRPC words it":           errors.New("rpc error: code = Canceled desc = context canceled"),
	"as a connection words it":   errors.New("use of closed network connection"),
	"as a deadline":              context.DeadlineExceeded,
	"as the service's own error": errDown,
}

// cancellableForms lists every way to make a call that a context may cancel. Each makes a call of
// fn, and returns the counts of the breaker.
var cancellableForms = map[string]func(ask func(error) breaker.Outcome) (call func(c ctx, fn func(ctx) error), counts func() window.Counts){
	"Run": classifiedByConfig(func(c ctx, b *breaker.Breaker, fn func(ctx) error) { _ = b.Run(c, fn) }),
	"Do": classifiedByConfig(func(c ctx, b *breaker.Breaker, fn func(ctx) error) {
		_, _ = breaker.Do(c, b, func(c ctx) (int, error) { return 0, fn(c) })
	}),
	"Permit.Run": classifiedByConfig(func(c ctx, b *breaker.Breaker, fn func(ctx) error) {
		if p, err := b.Allow(); err == nil {
			_ = p.Run(c, fn)
		}
	}),
	"Done": classifiedByConfig(func(c ctx, b *breaker.Breaker, fn func(ctx) error) {
		if p, err := b.Allow(); err == nil {
			p.Done(c, fn(c))
		}
	}),
	"DoResult": func(ask func(error) breaker.Outcome) (func(ctx, func(ctx) error), func() window.Counts) {
		b := breaker.New("b", breaker.Config{})
		return func(c ctx, fn func(ctx) error) {
			_, _ = breaker.DoResult(c, b, func(c ctx) (int, error) { return 0, fn(c) },
				func(_ int, err error) breaker.Outcome { return ask(err) })
		}, b.Counts
	},
}

// classifiedCall creates a breaker with a classifier. It returns a function that makes a call
// through the breaker, and the counts of the breaker.
type classifiedCall = func(func(error) breaker.Outcome) (func(ctx, func(ctx) error), func() window.Counts)

func classifiedByConfig(call func(ctx, *breaker.Breaker, func(ctx) error)) classifiedCall {
	return func(ask func(error) breaker.Outcome) (func(ctx, func(ctx) error), func() window.Counts) {
		b := breaker.New("b", breaker.Config{Classify: ask})
		return func(c ctx, fn func(ctx) error) { call(c, b, fn) }, b.Counts
	}
}

func TestAnErrorOfACancelledCallIsIgnoredWhateverItIs(t *testing.T) {
	for verb, judge := range cancellableForms {
		for wording, err := range cancelErrors {
			for _, cause := range []error{nil, errors.New("another request was faster"), err} {
				call, counts := judge(func(error) breaker.Outcome {
					t.Errorf("%s, %s: the classifier is asked", verb, wording)
					return breaker.Failure
				})
				c, cancel := context.WithCancelCause(bg())
				call(c, func(ctx) error { cancel(cause); return err })
				require.Equal(t, window.Counts{Ignored: 1}, counts(), "%s, %s, cause %v", verb, wording, cause)
			}
		}
	}
}

func TestACancelledCallThatSucceedsIsASuccess(t *testing.T) {
	for verb, judge := range cancellableForms {
		for _, c := range []struct {
			verdict breaker.Outcome
			want    window.Counts
		}{
			{breaker.Success, window.Counts{Successes: 1}},
			// the cancellation may have caused this value
			{breaker.Failure, window.Counts{Ignored: 1}},
			{breaker.Ignored, window.Counts{Ignored: 1}},
		} {
			call, counts := judge(func(error) breaker.Outcome { return c.verdict })
			cancelled, cancel := context.WithCancel(bg())
			call(cancelled, func(ctx) error { cancel(); return nil })
			require.Equal(t, c.want, counts(), "%s judged %v", verb, c.verdict)
		}
	}
}

func TestADeadlineThatHasPassedIsAFailureInEveryForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for verb, judge := range cancellableForms {
			for wording, err := range cancelErrors {
				call, counts := judge(breaker.DefaultClassify)
				c, cancel := context.WithTimeout(bg(), time.Millisecond)
				call(c, func(ctx) error {
					<-c.Done()
					cancel() // too late to be a cancellation
					return err
				})
				require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, counts(), "%s, %s", verb, wording)
			}
		}
	})
}

func TestAPanicOfACancelledCallIsIgnored(t *testing.T) {
	for verb, judge := range cancellableForms {
		if verb == "Done" || verb == "Outcome" {
			continue // nothing is reported for a call that does not return
		}
		call, counts := judge(nil)
		c, cancel := context.WithCancel(bg())
		require.PanicsWithValue(t, "aborted", func() { call(c, func(ctx) error { cancel(); panic("aborted") }) }, verb)
		require.Equal(t, window.Counts{Ignored: 1}, counts(), verb)
	}
}

func TestACancelledProbeDecidesNothingWhateverItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for wording, err := range cancelErrors {
			b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, Probes: 1})
			for range 5 {
				c, cancel := context.WithCancel(bg())
				require.Equal(t, err, b.Run(c, func(ctx) error { cancel(); return err }), wording)
				require.Equal(t, breaker.HalfOpen, b.State(), wording)
			}
			require.NoError(t, b.Run(bg(), succeed), wording)
			require.Equal(t, breaker.Closed, b.State(), wording)
		}
	})
}

// A call that returns after its caller has cancelled it is neither slow nor a failure.
func TestACancelledCallIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{SlowCall: 500 * time.Millisecond, MinCalls: 5})
		c, cancel := context.WithCancel(bg())
		for range 10 {
			go func() { _ = b.Run(c, func(c ctx) error { <-c.Done(); return errDown }) }()
		}
		time.Sleep(900 * time.Millisecond)
		cancel()
		synctest.Wait()
		for range 10 {
			time.Sleep(time.Second)
			require.NoError(t, b.Run(bg(), succeed))
		}
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, int64(10), b.Totals().Ignored)
		require.Zero(t, b.Totals().Slow)
	})
}
