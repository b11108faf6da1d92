package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// classifiedCallForms has every way to make a call whose result is classified.
var classifiedCallForms = map[string]func(c context.Context, t *throttle.Throttle, fn func(context.Context) error){
	"Run": func(c context.Context, t *throttle.Throttle, fn func(context.Context) error) { _ = t.Run(c, fn) },
	"Do": func(c context.Context, t *throttle.Throttle, fn func(context.Context) error) {
		_, _ = throttle.Do(c, t, func(c context.Context) (int, error) { return 0, fn(c) })
	},
	"Permit.Done": func(c context.Context, t *throttle.Throttle, fn func(context.Context) error) {
		if p, err := t.Allow(); err == nil {
			p.Done(c, fn(c))
		}
	},
}

func TestAnErrorOfACancelledCallIsIgnored(t *testing.T) {
	for verb, call := range classifiedCallForms {
		for _, err := range []error{context.Canceled, context.DeadlineExceeded, errDown} {
			th := throttle.New("t", throttle.Config{Classify: func(error) window.Outcome {
				t.Errorf("%s: the classifier is asked about %v", verb, err)
				return window.Failure
			}})
			c, cancel := context.WithCancel(bg())
			call(c, th, func(context.Context) error { cancel(); return err })
			require.Equal(t, window.Counts{Ignored: 1}, th.Counts(), "%s, %v", verb, err)
		}
	}
}

func TestACancelledCallThatSucceedsIsASuccess(t *testing.T) {
	for verb, call := range classifiedCallForms {
		for verdict, want := range map[window.Outcome]window.Counts{
			window.Success: {Successes: 1}, window.Failure: {Ignored: 1}, window.Ignored: {Ignored: 1},
		} {
			th := throttle.New("t", throttle.Config{Classify: func(error) window.Outcome { return verdict }})
			c, cancel := context.WithCancel(bg())
			call(c, th, func(context.Context) error { cancel(); return nil })
			require.Equal(t, want, th.Counts(), "%s classified as %v", verb, verdict)
		}
	}
}

func TestADeadlineThatHasPassedIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for verb, call := range classifiedCallForms {
			th := throttle.New("t", throttle.Config{})
			c, cancel := context.WithTimeout(bg(), time.Millisecond)
			call(c, th, func(context.Context) error {
				<-c.Done()
				cancel() // too late to be a cancellation
				return errors.New("aborted")
			})
			require.Equal(t, window.Counts{Failures: 1, ConsecutiveFailures: 1}, th.Counts(), verb)
		}
	})
}

func TestAPanicOfACancelledCallIsIgnored(t *testing.T) {
	for _, verb := range []string{"Run", "Do"} {
		th := throttle.New("t", throttle.Config{})
		c, cancel := context.WithCancel(bg())
		require.PanicsWithValue(t, "aborted", func() {
			classifiedCallForms[verb](c, th, func(context.Context) error { cancel(); panic("aborted") })
		}, verb)
		require.Equal(t, window.Counts{Ignored: 1}, th.Counts(), verb)
	}
}

// A call that an inner guard refused never reached the service.
func TestARefusalOfAnInnerGuardIsIgnoredBeforeClassifyIsCalled(t *testing.T) {
	for verb, call := range classifiedCallForms {
		th := throttle.New("t", throttle.Config{Classify: func(error) window.Outcome {
			t.Errorf("%s: the classifier is asked", verb)
			return window.Failure
		}})
		call(bg(), th, func(context.Context) error { return fmt.Errorf("inner: %w", weir.ErrRefused) })
		require.Equal(t, window.Counts{Ignored: 1}, th.Counts(), verb)
	}
}
