package breaker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// holdPermits acquires n permits and records no result.
func holdPermits(t *testing.T, b *breaker.Breaker, n int) []*breaker.Permit {
	t.Helper()
	var held []*breaker.Permit
	for range n {
		p, err := b.Allow()
		require.NoError(t, err)
		held = append(held, &p)
	}
	return held
}

func TestDoReturnsTheValue(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1})
	v, err := breaker.Do(bg(), b, func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, v)
	v, err = breaker.Do(bg(), b, func(context.Context) (int, error) { return 8, errDown })
	require.Equal(t, errDown, err)
	require.Equal(t, 8, v, "the value stands whatever the error")
	v, err = breaker.Do(bg(), b, func(context.Context) (int, error) { return 9, nil })
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.Zero(t, v)
}

func TestContextThatIsDoneTakesNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	ctx, cancel := context.WithCancel(bg())
	cancel()
	require.Equal(t, context.Canceled, b.Run(ctx, succeed))
	_, err := breaker.Do(ctx, b, func(context.Context) (int, error) { return 1, nil })
	require.Equal(t, context.Canceled, err)
	require.Zero(t, b.Totals())
}

func TestNilFunctionPanicsAndTakesNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	require.PanicsWithValue(t, "breaker: the function to call is nil", func() { _ = b.Run(bg(), nil) })
	require.PanicsWithValue(t, "breaker: the function to call is nil", func() { _, _ = breaker.Do[int](bg(), b, nil) })
	require.Zero(t, b.Totals())
}

func TestCallsAllocateNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{FailureRate: breaker.Off})
	o := breaker.New("o", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
	run(t, o, 1, fail)
	tried := breaker.New("t", breaker.Config{Force: breaker.Shadow, SlowCall: time.Hour})
	ctx := bg()
	value := func(context.Context) (int, error) { return 1, errDown }
	for name, f := range map[string]func(){
		"closed, success":  func() { _ = b.Run(ctx, succeed) },
		"closed, failure":  func() { _ = b.Run(ctx, fail) },
		"closed, Do":       func() { _, _ = breaker.Do(ctx, b, value) },
		"open, Run":        func() { _ = o.Run(ctx, succeed) },
		"open, Do":         func() { _, _ = breaker.Do(ctx, o, value) },
		"Allow and Record": func() { p, _ := b.Allow(); p.Record(bg(), nil, breaker.Success) },
		"Check when open":  func() { _ = o.Check() },
		"State and Counts": func() { _, _ = b.State(), b.Counts() },
		"Totals when open": func() { _ = o.Totals() },
		"in shadow mode":   func() { _ = tried.Run(ctx, succeed) },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
	}
}

func TestAPermitMakesItsCall(t *testing.T) {
	b := breaker.New("b", breaker.Config{ConsecutiveFailures: 2})
	var permit breaker.Permit
	require.PanicsWithValue(t, "breaker: the permit is used up", func() { _ = permit.Run(bg(), succeed) })
	require.NoError(t, b.Admit(&permit))
	require.PanicsWithValue(t, "breaker: the function to call is nil", func() { _ = permit.Run(bg(), nil) })
	require.NoError(t, permit.Run(bg(), succeed))
	require.EqualValues(t, 1, b.Counts().Successes)
	require.False(t, permit.Record(bg(), nil, breaker.Failure), "it is used up")
	require.PanicsWithValue(t, "breaker: the permit is used up", func() { _ = permit.Run(bg(), succeed) })

	permit = breaker.Permit{}
	require.NoError(t, b.AdmitAt(time.Now(), &permit))
	require.PanicsWithValue(t, "x", func() { _ = permit.Run(bg(), func(ctx) error { panic("x") }) })
	require.EqualValues(t, 1, b.Counts().Failures)
	permit = breaker.Permit{}
	require.NoError(t, b.Admit(&permit))
	require.True(t, permit.Record(bg(), nil, breaker.Success))
	require.Panics(t, func() { _ = permit.Run(bg(), succeed) })

	for range 2 {
		permit = breaker.Permit{}
		require.NoError(t, b.Admit(&permit))
		require.ErrorIs(t, permit.Run(bg(), fail), errDown)
	}
	permit = breaker.Permit{}
	require.ErrorIs(t, b.Admit(&permit), breaker.ErrOpen)
	require.ErrorIs(t, b.AdmitAt(time.Now(), &permit), breaker.ErrOpen)
	require.False(t, permit.Record(bg(), nil, breaker.Success), "what was refused has no permit")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if b.Admit(&permit) == nil {
			t.Fatal("let through")
		}
	}))
}

// AdmitClosedAt does what AdmitAt does for a closed breaker, and leaves everything else to AdmitAt.
func TestAdmitClosedAt(t *testing.T) {
	var permit breaker.Permit
	b := breaker.NewAt("x", breaker.Config{SlowCall: time.Second, LastCalls: 3}, modelTimeAt(0))
	require.False(t, b.AdmitClosedAt(0, &permit), "calls are sampled")
	for range 64 {
		require.NoError(t, modelMakeCall(b, 0, breaker.Success))
	}
	require.True(t, b.AdmitClosedAt(time.Second, &permit))
	require.True(t, permit.RecordAt(modelTimeAt(1500), breaker.Success))
	require.Zero(t, b.CountsAt(modelTimeAt(1500)).Slow, "it took half a second")
	for range 2 {
		permit = breaker.Permit{}
		require.True(t, b.AdmitClosedAt(2*time.Second, &permit))
		require.True(t, permit.RecordAt(modelTimeAt(3500), breaker.Failure))
	}
	require.EqualValues(t, 2, b.CountsAt(modelTimeAt(3500)).Slow)

	permit = breaker.Permit{}
	require.False(t, b.AdmitClosedAt(4*time.Second, &permit), "it is open")
	require.False(t, b.AdmitClosedAt(time.Hour, &permit), "and would be half-open, which is for AdmitAt")
	require.Zero(t, b.CountsAt(modelTimeAt(4000)).Refused)
	require.False(t, permit.Record(bg(), nil, breaker.Success), "what was not let through has no permit")

	b = breaker.NewAt("x", breaker.Config{}, modelTimeAt(0))
	require.False(t, b.AdmitClosedAt(0, &permit), "calls are sampled")
}
