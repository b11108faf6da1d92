package gatehook_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

type value struct{ a int }

// setValue is called through a variable, so that the compiler assumes that it keeps its argument.
var setValue = func(v *value, n int) { v.a = n }

func TestNoEscapeReturnsItsArgument(t *testing.T) {
	var v value
	require.Same(t, &v, gatehook.NoEscape(&v))
	require.Nil(t, gatehook.NoEscape[value](nil))
}

func TestNoEscapeKeepsAValueOnTheStack(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var v value
		setValue(gatehook.NoEscape(&v), 7)
		if v.a != 7 {
			panic("the value was not set")
		}
	}))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		var v value
		setValue(&v, 7)
	}), "without NoEscape the value is allocated")
}

// A goroutine starts with a small stack. Deep recursion moves the stack while each frame holds a
// pointer that went through NoEscape.
func TestNoEscapeSurvivesAMovedStack(t *testing.T) {
	done := make(chan int)
	go func() { done <- growStack(10_000) }()
	require.Equal(t, 10_000, <-done)
}

func growStack(depth int) int {
	if depth == 0 {
		runtime.GC() // which may shrink the stack
		return 0
	}
	var v value
	p := gatehook.NoEscape(&v)
	below := growStack(depth - 1)
	setValue(p, below+1)
	return v.a
}

type watcher func(waiting.Cause)

func (w *watcher) Interrupt(c waiting.Cause) { (*w)(c) }

// TestHooksAreSet asserts the types that gates assert.
func TestHooksAreSet(t *testing.T) {
	hooks, ok := gatehook.Breaker.(gatehook.Hooks[breaker.Breaker, breaker.Permit, breaker.Outcome])
	require.True(t, ok)
	b := breaker.New("b", breaker.Config{})
	var p breaker.Permit
	require.NoError(t, hooks.Admit(b, &p))
	o, expired, at, classify := hooks.Judge(&p, t.Context(), context.DeadlineExceeded)
	require.Nil(t, classify)
	require.Equal(t, breaker.Failure, o)
	require.False(t, expired)
	require.True(t, hooks.Record(&p, t.Context(), context.DeadlineExceeded, o, at, true))
	require.False(t, p.Record(breaker.Success), "the permit is used up")
	require.Equal(t, int64(1), b.Totals().Failures)
	require.Nil(t, hooks.Attached(b), "b is not in a group")

	b.Force(breaker.ForcedOpen)
	p = breaker.Permit{}
	require.False(t, hooks.AdmitAfter(b, time.Second, &p))
	require.ErrorIs(t, hooks.AdmitAt(b, time.Now(), &p), breaker.ErrOpen)
	require.ErrorIs(t, hooks.CheckAt(b, time.Now()), breaker.ErrOpen)
	require.ErrorIs(t, hooks.Refuse(b, "a reason"), breaker.ErrOpen)
	require.Equal(t, int64(3), b.Totals().Refused, "AdmitAfter refuses nothing")
	var told []waiting.Cause
	w := watcher(func(c waiting.Cause) { told = append(told, c) })
	hooks.Watch(b, &w)
	hooks.Unwatch(b, &w)
	require.Equal(t, []waiting.Cause{waiting.Opened}, told, "b is open")

	throttles, ok := gatehook.Throttle.(gatehook.Throttles[throttle.Throttle, window.Outcome])
	require.True(t, ok)
	th := throttle.New("th", throttle.Config{})
	throttles.Record(th, window.Success)
	require.Equal(t, "th", throttles.Name(th))
	require.Equal(t, int64(1), th.Totals().Successes)

	replays, ok := gatehook.Replay.(gatehook.Replays[breaker.Breaker, breaker.State])
	require.True(t, ok)
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b = breaker.NewAt("b", breaker.Config{}, t0)
	replays.OpenForAt(b, t0, time.Minute)
	require.Equal(t, breaker.Open, b.StateAt(t0.Add(time.Minute-1)))
	require.Equal(t, breaker.HalfOpen, b.StateAt(t0.Add(time.Minute)))
	replays.ResetAt(b, t0)
	require.Equal(t, breaker.Closed, b.StateAt(t0))
	replays.ForceAt(b, t0, breaker.Disabled)
	require.Equal(t, breaker.Disabled, b.StateAt(t0))
	replays.ReleaseAt(b, t0)
	require.Equal(t, breaker.Closed, b.StateAt(t0))
}

// A breaker ignores a deadline that is shorter than the usual time of a call. The gate learns that
// it has passed.
func TestAGateLearnsOfADeadlineThatTheBreakerIgnores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := gatehook.Breaker.(gatehook.Hooks[breaker.Breaker, breaker.Permit, breaker.Outcome])
		b := breaker.New("b", breaker.Config{})
		for range 100 {
			_ = b.Run(t.Context(), func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
		}
		for _, late := range []bool{true, false} {
			var p breaker.Permit
			require.NoError(t, hooks.Admit(b, &p))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if late {
				<-ctx.Done()
			}
			o, expired, _, _ := hooks.Judge(&p, ctx, context.DeadlineExceeded)
			cancel()
			require.Equal(t, late, expired)
			require.Equal(t, late, o == breaker.Ignored)
			o, expired = hooks.JudgeAs(&p, ctx, context.DeadlineExceeded, time.Second, breaker.Overloaded)
			require.Equal(t, breaker.Overloaded, o, "the service has answered")
			require.False(t, expired && !late)
		}
	})
}
