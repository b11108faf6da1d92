package weirgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirgrpc"
)

// remoteStore has one remote limit of two calls per key.
type remoteStore struct {
	err  error
	used map[string]int
}

type storedRemote struct {
	*remoteStore
	key string
}

func (s *remoteStore) limitOf(key string) limiter.Remote { return storedRemote{s, key} }

func (s storedRemote) Take(ctx context.Context, n int) (limiter.Result, error) {
	if err := errors.Join(ctx.Err(), s.err); err != nil {
		return limiter.Result{}, err
	}
	if s.used[s.key]+n > 2 {
		return limiter.Result{Limit: 2, RetryAfter: 3 * time.Second}, nil
	}
	s.used[s.key] += n
	return limiter.Result{OK: true, Limit: 2, Remaining: 2 - s.used[s.key]}, nil
}

func (s storedRemote) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	r, err := s.Take(ctx, n)
	return r, func(_ context.Context, n int) error {
		s.used[s.key] -= n
		return nil
	}, err
}

// serveCallOf makes the server serve a call of a tenant.
func serveCallOf(ctx context.Context, s *weirgrpc.Server, tenant string) error {
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("tenant", tenant))
	_, err := s.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) { return nil, nil })
	return err
}

func TestRemoteLimitsEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenants := &remoteStore{used: map[string]int{}}
		server := newServer(weirgrpc.LimitRemote("tenants", tenants.limitOf, weirgrpc.ByMetadata("tenant")))
		for _, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
			require.Equal(t, want, status.Code(serveCallOf(t.Context(), server, "acme")))
		}
		err := serveCallOf(t.Context(), server, "acme")
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.ErrorContains(t, err, "tenants")
		require.InDelta(t, 3*time.Second, weir.RetryAfter(err), float64(time.Second))
		require.NoError(t, serveCallOf(t.Context(), server, "emca"))
	})
}

// fullRemote has no room for any key.
type fullRemote struct{}

func (fullRemote) Take(context.Context, int) (limiter.Result, error) {
	return limiter.Result{NoRoom: true, Limit: 2, RetryAfter: time.Second}, nil
}

func (fullRemote) MaxKeys() int { return 7 }

func TestRemoteWithoutRoomIsNamed(t *testing.T) {
	server := newServer(weirgrpc.LimitRemote("tenants", func(string) limiter.Remote { return fullRemote{} }, weirgrpc.ByMetadata("tenant")))
	err := serveCallOf(t.Context(), server, "acme")
	require.ErrorIs(t, err, limiter.ErrLimited)
	require.ErrorContains(t, err, "no room for the key: MaxKeys is 7")
}

// If a Remote returns an error, the call is neither refused nor a failure of the handler.
func TestErrorOfARemoteIsNotARefusal(t *testing.T) {
	unavailable := errors.New("the store is unavailable")
	tenants := &remoteStore{used: map[string]int{}, err: unavailable}
	gate := weir.New("shop", weir.Config{})
	refusals := 0
	server := weirgrpc.NewServer(weirgrpc.ServerConfig{OnRefusal: func(context.Context, *weirgrpc.RefusedError) { refusals++ }},
		weirgrpc.Guard(weirgrpc.ForAll(gate)), weirgrpc.LimitRemote("tenants", tenants.limitOf, weirgrpc.ByMetadata("tenant")))
	err := serveCallOf(t.Context(), server, "acme")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.NotContains(t, status.Convert(err).Message(), "store", "the cause is not sent to clients")
	require.ErrorIs(t, err, unavailable)
	require.NotErrorIs(t, err, weir.ErrRefused)
	require.Zero(t, refusals)
	require.Zero(t, gate.Totals().Calls())

	ctx, leave := context.WithCancel(t.Context())
	leave()
	tenants.err = nil
	alone := newServer(weirgrpc.LimitRemote("tenants", tenants.limitOf, weirgrpc.ByMetadata("tenant")))
	require.Equal(t, codes.Canceled, status.Code(serveCallOf(ctx, alone, "acme")))
}

func TestLaterRefusalRefundsARemote(t *testing.T) {
	tenants := &remoteStore{used: map[string]int{}}
	gate := weir.New("shop", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	server := newServer(weirgrpc.LimitRemote("tenants", tenants.limitOf, weirgrpc.ByMetadata("tenant")), weirgrpc.Guard(weirgrpc.ForAll(gate)))
	for range 5 {
		require.ErrorIs(t, serveCallOf(t.Context(), server, "acme"), breaker.ErrOpen)
	}
	require.Zero(t, tenants.used["acme"])
}

func TestLaterRefusalRefundsTheRemoteOfAGate(t *testing.T) {
	tenants := &remoteStore{used: map[string]int{}}
	hits := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(2, time.Hour), Burst: 2})
	shop := weir.Join("shop", weir.Parts{Breaker: breaker.New("shop", breaker.Config{}), Limiter: hits, Remote: tenants.limitOf("acme")})
	closed := weir.New("closed", weir.Config{})
	closed.Breaker().Force(breaker.ForcedOpen, "")
	server := newServer(weirgrpc.Guard(weirgrpc.ForAll(shop)), weirgrpc.Guard(weirgrpc.ForAll(closed)))
	for range 5 {
		require.ErrorContains(t, serveCallOf(t.Context(), server, ""), `"closed"`)
	}
	require.Zero(t, tenants.used["acme"])
	require.Equal(t, 2, hits.Take(0).Remaining)
}

// The error of a Remote is not a decision about the call. A timeout of the store is not a timeout
// of the call, and an open breaker in front of the store is not one in front of the handler.
func TestErrorOfARemoteIsNeitherATimeoutNorARefusalOfTheCall(t *testing.T) {
	asBreaker := breaker.New("store", breaker.Config{})
	asBreaker.Force(breaker.ForcedOpen, "")
	_, open := asBreaker.Allow()
	for what, fault := range map[string]error{
		"a timeout": fmt.Errorf("store: %w", context.DeadlineExceeded), "a cancellation": fmt.Errorf("store: %w", context.Canceled), "a breaker": fmt.Errorf("store: %w", open),
	} {
		tenants := &remoteStore{used: map[string]int{}, err: fault}
		gate := weir.Join("shop", weir.Parts{Breaker: breaker.New("shop", breaker.Config{}), Remote: tenants.limitOf("acme")})
		rules := map[string]weirgrpc.Rule{"LimitRemote": weirgrpc.LimitRemote("tenants", tenants.limitOf, weirgrpc.ByMetadata("tenant"))}
		if what != "a breaker" {
			rules["Guard"] = weirgrpc.Guard(weirgrpc.ForAll(gate))
		}
		for name, rule := range rules {
			refusals := 0
			server := weirgrpc.NewServer(weirgrpc.ServerConfig{OnRefusal: func(context.Context, *weirgrpc.RefusedError) { refusals++ }}, rule)
			err := serveCallOf(t.Context(), server, "acme")
			require.Equal(t, codes.Unavailable, status.Code(err), "%s, %s", what, name)
			require.Equal(t, "a limit came to no decision", status.Convert(err).Message(), "%s, %s", what, name)
			require.Zero(t, refusals, "%s, %s", what, name)
		}
	}
}

func TestStatusOfARefusalByAThrottle(t *testing.T) {
	search := throttle.New("search", throttle.Config{})
	var err error
	for range 1000 {
		var permit throttle.Permit
		if permit, err = search.Allow(); err != nil {
			break
		}
		permit.Record(breaker.Failure)
	}
	require.ErrorIs(t, err, throttle.ErrRefused)
	refused := &weirgrpc.RefusedError{Method: get, Err: err}
	require.Equal(t, codes.Unavailable, status.Code(refused))
	require.Equal(t, "refused by a throttle, retry in 1s", status.Convert(refused).Message())
	info, ok := firstDetail[*errdetails.ErrorInfo](refused)
	require.True(t, ok)
	require.Equal(t, "THROTTLED", info.Reason)
}
