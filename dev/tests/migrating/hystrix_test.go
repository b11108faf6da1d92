package migrating

import (
	"context"
	"testing"
	"time"

	"github.com/afex/hystrix-go/hystrix"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// hystrix counts in a goroutine that never ends. So these tests cannot run in a synctest bubble,
// and wait for hystrix to open.

func throughHystrix(t *testing.T) *comparedProgram {
	t.Helper()
	hystrixUsers()
	t.Cleanup(hystrix.Flush)
	return &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) {
		return hystrixGet(ctx, get, fromCache, id)
	}}
}

func throughUsers(u *users) *comparedProgram {
	return &comparedProgram{get: func(ctx context.Context, get fetch, id int) (*User, error) { return u.get(ctx, get, fromCache, id) }}
}

func fromCache(context.Context, int) (*User, error) { return cachedUser, nil }

var cachedUser = &User{-1}

// wantCached makes calls and requires that all come from the cache, without a call to the service.
func (s *comparedProgram) wantCached(t *testing.T, calls int) {
	t.Helper()
	asked := s.asked
	for range calls {
		user, err := s.call(t.Context(), nil)
		require.NoError(t, err)
		require.Same(t, cachedUser, user)
	}
	require.Equal(t, asked, s.asked)
}

func awaitOpen(t *testing.T) {
	t.Helper()
	circuit, _, err := hystrix.GetCircuit("users")
	require.NoError(t, err)
	require.Eventually(t, circuit.IsOpen, time.Minute, time.Millisecond)
}

func TestBreakerOpensLikeHystrix(t *testing.T) {
	u := newUsers()
	peer, own := throughHystrix(t), throughUsers(u)
	for n := range 20 {
		var err error
		if n < 10 {
			err = errDown
		}
		want, wantErr := peer.call(t.Context(), err)
		got, gotErr := own.call(t.Context(), err)
		require.Equal(t, wantErr, gotErr)
		require.Equal(t, want, got)
	}
	awaitOpen(t)
	require.Equal(t, breaker.Open, u.breaker.State())
	peer.wantCached(t, 10)
	own.wantCached(t, 10)
	require.Equal(t, 20, peer.asked)
	require.Equal(t, 20, own.asked)
}

func TestHystrixCountsCallsWithoutASlotAsFailures(t *testing.T) {
	u := newUsers()
	peer, own := throughHystrix(t), throughUsers(u)
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

	peer.wantCached(t, 20)
	own.wantCached(t, 20)
	awaitOpen(t)
	require.Equal(t, breaker.Closed, u.breaker.State())
}

func TestHystrixAbandonsACall(t *testing.T) {
	t.Cleanup(hystrix.Flush)
	hystrix.ConfigureCommand("abandoned", hystrix.CommandConfig{Timeout: 1}) // ms
	release, ended := make(chan struct{}), make(chan struct{})
	err := hystrix.DoC(t.Context(), "abandoned", func(context.Context) error {
		<-release
		close(ended)
		return nil
	}, nil)
	require.ErrorIs(t, err, hystrix.ErrTimeout)
	close(release)
	<-ended
}
