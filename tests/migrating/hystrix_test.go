package migrating

import (
	"context"
	"testing"
	"time"

	"github.com/afex/hystrix-go/hystrix"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// hystrix counts in a goroutine that never ends, so it cannot be in a bubble, and what it makes of
// its counts is waited for.

func throughHystrix(t *testing.T) *side {
	t.Helper()
	hystrixUsers()
	t.Cleanup(hystrix.Flush)
	return &side{get: func(ctx context.Context, get fetch, id int) (*User, error) {
		return hystrixGet(ctx, get, fromCache, id)
	}}
}

func throughUsers(u *users) *side {
	return &side{get: func(ctx context.Context, get fetch, id int) (*User, error) { return u.get(ctx, get, fromCache, id) }}
}

func fromCache(context.Context, int) (*User, error) { return cached, nil }

var cached = &User{-1}

// wantCached makes calls, of which all are answered from the cache without asking the service.
func (s *side) wantCached(t *testing.T, calls int) {
	t.Helper()
	asked := s.asked
	for range calls {
		user, err := s.call(t.Context(), nil)
		require.NoError(t, err)
		require.Same(t, cached, user)
	}
	require.Equal(t, asked, s.asked)
}

func opens(t *testing.T) {
	t.Helper()
	circuit, _, err := hystrix.GetCircuit("users")
	require.NoError(t, err)
	require.Eventually(t, circuit.IsOpen, 10*time.Second, time.Millisecond)
}

func TestBreakerOpensAsHystrix(t *testing.T) {
	u := newUsers()
	theirs, ours := throughHystrix(t), throughUsers(u)
	for n := range 20 {
		var err error
		if n < 10 {
			err = errDown
		}
		want, wantErr := theirs.call(t.Context(), err)
		got, gotErr := ours.call(t.Context(), err)
		require.Equal(t, wantErr, gotErr)
		require.Equal(t, want, got)
	}
	opens(t)
	require.Equal(t, breaker.Open, u.breaker.State())
	theirs.wantCached(t, 10)
	ours.wantCached(t, 10)
	require.Equal(t, 20, theirs.asked)
	require.Equal(t, 20, ours.asked)
}

func TestHystrixTakesCallsWithoutASlotForFailures(t *testing.T) {
	u := newUsers()
	theirs, ours := throughHystrix(t), throughUsers(u)
	begun, end := make(chan bool), make(chan bool)
	defer close(end)
	hangs := func(ctx context.Context, id int) (*User, error) {
		begun <- true
		<-end
		return &User{id}, context.Cause(ctx)
	}
	for range 10 {
		go func() { _, _ = hystrixGet(context.WithoutCancel(t.Context()), hangs, fromCache, 7) }()
		go func() { _, _ = u.get(context.WithoutCancel(t.Context()), hangs, fromCache, 7) }()
	}
	for range 20 {
		<-begun
	}

	theirs.wantCached(t, 20)
	ours.wantCached(t, 20)
	opens(t)
	require.Equal(t, breaker.Closed, u.breaker.State())
}
