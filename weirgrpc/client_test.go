package weirgrpc_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// opensAfterTwoFailures is a config of a gate that opens after two failed calls.
var opensAfterTwoFailures = weir.Config{Breaker: breaker.Config{MinCalls: 2, Cooldown: time.Minute}}

func newClient(gate gateFunc) *weirgrpc.Client {
	return weirgrpc.NewClient(gate, weirgrpc.ClientConfig{})
}

func TestFailingMethodIsNotCalled(t *testing.T) {
	var served atomic.Int64
	shop := &service{unary: func(_ context.Context, in string) (string, error) {
		served.Add(1)
		return in, status.Error(codes.Internal, "broken")
	}}
	cc := serve(t, overTCP(t), shop, nil, newClient(gatePerMethod("shop", opensAfterTwoFailures)))
	for range 2 {
		_, err := call(t.Context(), cc, get, "x")
		require.EqualError(t, err, "rpc error: code = Internal desc = broken", "errors of calls are as they were")
	}

	_, err := call(t.Context(), cc, get, "x")
	require.EqualValues(t, 2, served.Load(), "the third call must not be made")
	require.ErrorIs(t, err, weir.ErrRefused)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.NotErrorIs(t, err, limiter.ErrLimited)
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, `weirgrpc: /test.Shop/Get refused: breaker "shop" for "/test.Shop/Get" is open until `)
	require.InDelta(t, time.Minute, weir.RetryAfter(err), float64(10*time.Second))
	require.Equal(t, weir.RetryAfter(err).Round(time.Second), retryAfter(err).Round(time.Second))

	refused, ok := errors.AsType[*weirgrpc.RefusedError](err)
	require.True(t, ok)
	var open *breaker.OpenError
	require.ErrorAs(t, refused.Err, &open)
	require.Equal(t, []string{"shop", get}, []string{open.Name, open.Key})
	require.Equal(t, weirgrpc.RefusedError{Method: get, Err: refused.Err}, *refused)

	_, err = call(t.Context(), cc, put, "x")
	require.Equal(t, codes.Internal, status.Code(err), "calls of another method are made")
}

func TestStatusOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := &weirgrpc.RefusedError{Method: get, Err: &breaker.OpenError{Name: "shop", Until: time.Now().Add(1500*time.Millisecond + 1)}}
		s := open.GRPCStatus()
		require.Equal(t, codes.Unavailable, s.Code())
		require.Equal(t, `refused by breaker "shop", retry in 1.501s`, s.Message(), "the wait is rounded up")
		info, ok := firstDetail[*errdetails.ErrorInfo](open)
		require.True(t, ok)
		require.Equal(t, []string{"BREAKER_OPEN", "github.com/weir-go/weir", "shop"}, []string{info.Reason, info.Domain, info.Metadata["name"]})
		retry, ok := firstDetail[*errdetails.RetryInfo](open)
		require.True(t, ok)
		require.Equal(t, 1501*time.Millisecond, retry.RetryDelay.AsDuration())

		limited := &weirgrpc.RefusedError{Method: get, Err: &limiter.LimitedError{Name: "clients"}}
		require.Equal(t, codes.ResourceExhausted, limited.GRPCStatus().Code())
		require.Equal(t, `refused by limiter "clients"`, limited.GRPCStatus().Message())
		info, _ = firstDetail[*errdetails.ErrorInfo](limited)
		require.Equal(t, "LIMITED", info.Reason)
		_, ok = firstDetail[*errdetails.RetryInfo](limited)
		require.False(t, ok, "the call will never be allowed")

		far := &weirgrpc.RefusedError{Err: &limiter.LimitedError{Until: time.Now().Add(math.MaxInt64 - 1)}}
		_, ok = firstDetail[*errdetails.RetryInfo](far)
		require.False(t, ok)
	})
}

func TestCallsUseTheGateOfTheirKey(t *testing.T) {
	type tenant struct{}
	bulk := weir.New("bulk", opensAfterTwoFailures)
	methods := []string{get, put, other}
	for name, step := range map[string]struct {
		gate    gateFunc
		refused []string // methods that are refused after get has failed
	}{
		"method":  {gatePerMethod("g", opensAfterTwoFailures), []string{get}},
		"service": {gatePerService("g", opensAfterTwoFailures), []string{get, put}},
		"target":  {gatePerTarget("g", opensAfterTwoFailures), methods},
		"one":     {weirgrpc.ForAll(weir.New("g", opensAfterTwoFailures)), methods},
		"key": {weirgrpc.Per(weir.NewGroup[any]("g", weir.GroupConfig{Gate: opensAfterTwoFailures}), func(ctx context.Context, _ weirgrpc.Call) any {
			return ctx.Value(tenant{})
		}), methods},
		"own function": {func(_ context.Context, c weirgrpc.Call) *weir.Gate {
			if c.Method == put {
				return nil
			}
			return bulk
		}, []string{get, other}},
	} {
		t.Run(name, func(t *testing.T) {
			down := &service{unary: func(context.Context, string) (string, error) { return "", status.Error(codes.Unavailable, "down") }}
			client := newClient(step.gate)
			cc, second := serve(t, overTCP(t), down, nil, client), serve(t, overTCP(t), &service{}, nil, client)
			ctx := context.WithValue(t.Context(), tenant{}, "a")
			for range 2 {
				_, _ = call(ctx, cc, get, "")
			}
			var refused []string
			for _, m := range methods {
				if _, err := call(ctx, cc, m, ""); errors.Is(err, breaker.ErrOpen) {
					refused = append(refused, m)
				}
			}
			require.Equal(t, step.refused, refused)

			_, err := call(ctx, second, get, "")
			require.Equal(t, name != "target", err != nil, "another target: %v", err)
			_, err = call(context.WithValue(ctx, tenant{}, "b"), second, get, "")
			require.Equal(t, name != "target" && name != "key", err != nil, "another tenant: %v", err)
		})
	}
}

func TestLimitOfAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("shop", weir.Config{Rate: limiter.PerSecond(2), Burst: 2})
		cc := serve(t, inMemory(), &service{}, nil, newClient(weirgrpc.ForAll(gate)))
		for range 2 {
			out, err := call(t.Context(), cc, get, "x")
			require.NoError(t, err)
			require.Equal(t, "x", out)
		}
		_, err := call(t.Context(), cc, get, "x")
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.Equal(t, 500*time.Millisecond, weir.RetryAfter(err))
		time.Sleep(weir.RetryAfter(err))
		_, err = call(t.Context(), cc, get, "x")
		require.NoError(t, err)
		require.Equal(t, limiter.Stats{Allowed: 3, Refused: 1}, gate.Stats())
	})
}

func TestCancellationIsIgnoredAndDeadlineIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("shop", weir.Config{})
		hang := &service{unary: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		cc := serve(t, inMemory(), hang, nil, newClient(weirgrpc.ForAll(gate)))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := call(ctx, cc, get, "")
		require.Equal(t, codes.Canceled, status.Code(err))
		require.EqualValues(t, 1, gate.Totals().Ignored)

		_, err = call(ctx, cc, get, "")
		require.Equal(t, codes.Canceled, status.Code(err), "the error of a context is a status")
		require.EqualValues(t, 1, gate.Totals().Ignored, "a call whose context is done is not counted")

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = call(ctx, cc, get, "")
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.EqualValues(t, 1, gate.Totals().Failures)
	})
}

// A cancelled call is ignored, whatever Classify returns.
func TestClientClassify(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	client := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{Classify: func(err error) breaker.Outcome {
		if status.Code(err) == codes.NotFound {
			return breaker.Success
		}
		return breaker.Failure
	}})
	shop := &service{unary: func(ctx context.Context, in string) (string, error) {
		if in == "hang" {
			<-ctx.Done()
		}
		return "", status.Error(codes.NotFound, in)
	}}
	cc := serve(t, overTCP(t), shop, nil, client)
	_, _ = call(t.Context(), cc, get, "x")
	_, _ = call(t.Context(), cc, "/test.Shop/None", "x")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, _ = call(ctx, cc, get, "hang")
	got := gate.Totals()
	require.Equal(t, []int64{1, 1, 1}, []int64{got.Successes, got.Failures, got.Ignored})
}

func TestPanicOfTheInvokerIsAFailure(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	client := newClient(weirgrpc.ForAll(gate))
	cc := connect(t, network{target: "passthrough:///nowhere"}, nil)
	require.PanicsWithValue(t, "codec", func() {
		_ = client.Unary(t.Context(), get, nil, nil, cc, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { panic("codec") })
	})
	require.PanicsWithValue(t, "codec", func() {
		_, _ = client.Stream(t.Context(), nil, cc, chat, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			panic("codec")
		})
	})
	require.EqualValues(t, 2, gate.Totals().Failures)
}

func TestPanickingClassifyIgnoresTheCall(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	client := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{Classify: func(error) breaker.Outcome { panic("rule") }})
	cc := serve(t, overTCP(t), &service{}, nil, client)
	require.PanicsWithValue(t, "rule", func() { _, _ = call(t.Context(), cc, get, "") })
	require.EqualValues(t, 1, gate.Totals().Ignored)
}

func TestRefusalsOfAServerAreFailuresForAClient(t *testing.T) {
	hits := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "hits"})
	gate := weir.New("shop", weir.Config{})
	deaf := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{MaxRetryAfter: breaker.Off})
	cc := serve(t, overTCP(t), &service{}, newServer(weirgrpc.Limit(hits)), deaf)
	for range 3 {
		_, err := call(t.Context(), cc, get, "")
		require.NotErrorIs(t, err, weir.ErrRefused, "the client has not refused the call")
	}
	got := gate.Totals()
	require.Equal(t, []int64{1, 2}, []int64{got.Successes, got.Failures})
}

// The server sends a RetryInfo, and the client does not call earlier.
func TestClientAndServerTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hits := bucket("hits", limiter.PerSecond(1), 1)
		gate := weir.New("shop", weir.Config{Rate: limiter.PerSecond(1000)})
		cc := serve(t, inMemory(), &service{}, newServer(weirgrpc.Limit(hits)), newClient(weirgrpc.ForAll(gate)))
		var passed []time.Duration
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			if _, err := call(t.Context(), cc, get, ""); err == nil {
				passed = append(passed, time.Since(start))
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.Len(t, passed, 10)
		require.EqualValues(t, 10, hits.Stats().Refused, "one of 1000 calls per second is refused by the server, and the others by the client")
	})
}

func TestCallRetriedByGRPCCountsOnce(t *testing.T) {
	gate, calls := weir.New("shop", weir.Config{}), 0
	flaky := &service{unary: func(context.Context, string) (string, error) {
		if calls++; calls < 3 {
			return "", status.Error(codes.Unavailable, "not yet")
		}
		return "", nil
	}}
	over := overTCP(t)
	over.dial = []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]
	}}]}`)}
	_, err := call(t.Context(), serve(t, over, flaky, nil, newClient(weirgrpc.ForAll(gate))), get, "")
	require.NoError(t, err)
	require.Equal(t, 3, calls)
	require.Equal(t, oneSuccess, outcomes(gate))
}

func TestMissingArgumentsOfClients(t *testing.T) {
	require.PanicsWithError(t, "weirgrpc: NewClient needs a gate function", func() { newClient(nil) })
	deaf := weirgrpc.ClientConfig{MaxRetryAfter: -time.Second}
	require.PanicsWithError(t, "weirgrpc: MaxRetryAfter is -1s, must not be negative, or Off", func() { weirgrpc.NewClient(weirgrpc.ForAll(weir.New("shop", weir.Config{})), deaf) })
	require.PanicsWithError(t, "weirgrpc: ForAll needs a gate", func() { weirgrpc.ForAll(nil) })
	require.Panics(t, func() { weirgrpc.Per[int](nil, func(context.Context, weirgrpc.Call) int { return 1 }) })
	require.Panics(t, func() { weirgrpc.Per(weir.NewGroup[int]("g", weir.GroupConfig{}), nil) })
}
