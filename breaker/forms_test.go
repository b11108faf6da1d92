package breaker_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/window"
)

// allCallForms lists every way to make a call through a breaker. Each returns the error of fn, and
// the value 7 if the form has a value.
var allCallForms = map[string]func(c ctx, b *breaker.Breaker, fn func(ctx) error) (any, error){
	"Run": func(c ctx, b *breaker.Breaker, fn func(ctx) error) (any, error) { return 0, b.Run(c, fn) },
	"Do": func(c ctx, b *breaker.Breaker, fn func(ctx) error) (any, error) {
		return breaker.Do(c, b, func(c ctx) (int, error) { return 7, fn(c) })
	},
	"DoResult": func(c ctx, b *breaker.Breaker, fn func(ctx) error) (any, error) {
		return breaker.DoResult(c, b, func(c ctx) (int, error) { return 7, fn(c) }, verdictOf)
	},
}

func verdictOf(_ int, err error) breaker.Outcome { return breaker.DefaultClassify(err) }

func TestEveryFormIsRefusedOnceAndCallsNothing(t *testing.T) {
	quick := breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 1}
	for state, c := range map[breaker.State]struct {
		config  breaker.Config
		prepare func(*testing.T, *breaker.Breaker)
	}{
		breaker.Open: {prepare: func(_ *testing.T, b *breaker.Breaker) { b.OpenFor(time.Hour) }},
		breaker.HalfOpen: {config: quick, prepare: func(t *testing.T, b *breaker.Breaker) {
			t.Helper()
			run(t, b, 1, fail)
			holdPermits(t, b, 1)
		}},
		breaker.ForcedOpen: {config: breaker.Config{Force: breaker.ForcedOpen}},
	} {
		for name, call := range allCallForms {
			t.Run(string(state)+", "+name, func(t *testing.T) {
				b := breaker.New("b", c.config)
				if c.prepare != nil {
					c.prepare(t, b)
				}
				require.Equal(t, state, b.State())
				before := b.Totals()
				v, err := call(bg(), b, func(ctx) error { t.Error("called though it was refused"); return nil })
				var e *breaker.OpenError
				require.ErrorAs(t, err, &e)
				require.Equal(t, state, e.State)
				require.Zero(t, v)
				before.Refused++
				require.Equal(t, before, b.Totals())
			})
		}
	}
}

// newInState returns a breaker that is closed, open for a second, or forced.
func newInState(c breaker.Config, s breaker.State) *breaker.Breaker {
	b := breaker.New("b", c)
	switch s {
	case breaker.Closed:
	case breaker.Open:
		b.OpenFor(time.Second)
	default:
		b.Force(s, "")
	}
	return b
}

func TestNoFormCallsForAContextThatIsDone(t *testing.T) {
	done, cancel := context.WithCancel(bg())
	cancel()
	for name, call := range allCallForms {
		for _, state := range []breaker.State{breaker.Closed, breaker.Open, breaker.ForcedOpen, breaker.ForcedClosed} {
			b := newInState(breaker.Config{}, state)
			v, err := call(done, b, func(ctx) error { t.Error("called though the context is done"); return nil })
			require.Equal(t, context.Canceled, err, "%s, %v", name, state)
			require.Zero(t, v, "%s, %v", name, state)
			require.Zero(t, b.Totals(), "%s, %v: it counts as nothing", name, state)
		}
	}
}

func TestEveryFormReturnsWhatTheFunctionDoes(t *testing.T) {
	for name, call := range allCallForms {
		b := breaker.New("b", breaker.Config{})
		v, err := call(bg(), b, succeed)
		require.NoError(t, err, name)
		if name != "Run" {
			require.Equal(t, 7, v, name)
		}
		_, err = call(bg(), b, fail)
		require.Equal(t, errDown, err, name)
		require.Equal(t, window.Totals{Successes: 1, Failures: 1}, withoutTotalStreak(b.Totals()), name)
	}
}

func withoutTotalStreak(c window.Totals) window.Totals {
	c.ConsecutiveFailures = 0
	return c
}

func TestACallThatDoesNotReturnIsAFailureInEveryForm(t *testing.T) {
	boom := errors.New("boom")
	for name, call := range allCallForms {
		for how, end := range map[string]func(){"panic": func() { panic(boom) }, "the end of its goroutine": runtime.Goexit} {
			do := func(b *breaker.Breaker) {
				var thrown any
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { thrown = recover() }()
					_, _ = call(bg(), b, func(ctx) error { end(); return nil })
				})
				wg.Wait()
				if how == "panic" {
					require.Equal(t, boom, thrown, "%s: the panic propagates", name)
				}
			}
			b := breaker.New("b", breaker.Config{})
			do(b)
			require.Equal(t, window.Totals{Failures: 1}, withoutTotalStreak(b.Totals()), "%s, %s", name, how)

			b = breaker.New("b", breaker.Config{MinCalls: 1, Probes: 1, CooldownFactor: 2, Cooldown: time.Hour})
			b.OpenFor(0)
			do(b)
			require.Equal(t, breaker.Open, b.State(), "%s, %s: a probe has failed", name, how)
		}
	}
}

func TestEveryFormPanicsWithoutAFunctionAndTakesNothing(t *testing.T) {
	value := func(ctx) (int, error) { return 7, nil }
	for name, call := range map[string]func(b *breaker.Breaker){
		"Run":                        func(b *breaker.Breaker) { _ = b.Run(bg(), nil) },
		"Do":                         func(b *breaker.Breaker) { _, _ = breaker.Do[int](bg(), b, nil) },
		"DoResult":                   func(b *breaker.Breaker) { _, _ = breaker.DoResult(bg(), b, nil, verdictOf) },
		"DoResult without a verdict": func(b *breaker.Breaker) { _, _ = breaker.DoResult(bg(), b, value, nil) },
	} {
		b := breaker.New("b", breaker.Config{MinCalls: 1, Probes: 1})
		require.PanicsWithValue(t, "breaker: the function to call is nil", func() { call(b) }, name)
		require.Zero(t, b.Totals(), name)
		b.OpenFor(0)
		require.PanicsWithValue(t, "breaker: the function to call is nil", func() { call(b) }, name)
		require.NoError(t, b.Check(), "%s: the place of the probe is free", name)
		require.Zero(t, b.Totals(), name)
	}
}

// retryAfterError is an error with a method RetryAfter.
type retryAfterError time.Duration

func (retryAfterError) Error() string               { return "come back later" }
func (a retryAfterError) RetryAfter() time.Duration { return time.Duration(a) }

func TestDoneCountsOnceAndByItsOutcome(t *testing.T) {
	gone, cancel := context.WithCancel(bg())
	cancel()
	for name, c := range map[string]struct {
		ctx  ctx
		err  error
		want window.Totals
	}{
		"no error":           {bg(), nil, window.Totals{Successes: 1}},
		"an error":           {bg(), errDown, window.Totals{Failures: 1}},
		"an inner refusal":   {bg(), sentinel.ErrRefused, window.Totals{Ignored: 1}},
		"the caller gave up": {gone, context.Canceled, window.Totals{Ignored: 1}},
	} {
		b := breaker.New("b", breaker.Config{})
		p := holdPermits(t, b, 1)[0]
		require.True(t, p.Done(c.ctx, c.err), name)
		require.False(t, p.Done(c.ctx, c.err), "%s: it is used up", name)
		require.False(t, p.Record(bg(), nil, breaker.Failure), "%s: it is used up", name)
		require.Equal(t, c.want, withoutTotalStreak(b.Totals()), name)
	}
	var none breaker.Permit
	require.False(t, none.Done(bg(), nil))

	b := breaker.New("b", breaker.Config{})
	p := holdPermits(t, b, 1)[0]
	b.OpenFor(time.Hour)
	require.False(t, p.Done(bg(), nil), "it is late")
	require.EqualValues(t, 1, b.StatsNow().Late)
}

func TestDonePassesOnTheRetryAfterOfAnError(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Second})
	p := holdPermits(t, b, 1)[0]
	require.True(t, p.Done(bg(), retryAfterError(30*time.Second)))
	var e *breaker.OpenError
	require.ErrorAs(t, b.Check(), &e)
	require.Greater(t, e.RetryAfter(), 20*time.Second)
}
