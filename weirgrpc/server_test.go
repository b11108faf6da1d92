package weirgrpc_test

import (
	"context"
	"errors"
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
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
	"github.com/weir-go/weir/window"
)

func newServer(rules ...weirgrpc.Rule) *weirgrpc.Server {
	return weirgrpc.NewServer(weirgrpc.ServerConfig{}, rules...)
}

func bucket(name string, r limiter.Rate, burst int) *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: r, Burst: burst, Name: name})
}

func TestFailingHandlersAreNotCalled(t *testing.T) {
	var served atomic.Int64
	shop := &service{unary: func(_ context.Context, in string) (string, error) {
		served.Add(1)
		return in, errors.New("no database")
	}}
	cc := serve(t, overTCP(t), shop, newServer(weirgrpc.Guard(gatePerMethod("shop", opensAfterTwoFailures))), nil)
	for range 2 {
		_, err := call(t.Context(), cc, get, "")
		require.EqualError(t, err, "rpc error: code = Unknown desc = no database", "errors of handlers are as they were")
	}
	_, err := call(t.Context(), cc, get, "")
	require.EqualValues(t, 2, served.Load())
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, `refused by breaker "shop", retry in `)
	require.InDelta(t, time.Minute, retryAfter(err), float64(10*time.Second))
	info, ok := firstDetail[*errdetails.ErrorInfo](err)
	require.True(t, ok)
	require.Equal(t, "BREAKER_OPEN", info.Reason)
	require.NotErrorIs(t, err, weir.ErrRefused, "the client only gets a status")

	_, err = call(t.Context(), cc, put, "")
	require.Equal(t, codes.Unknown, status.Code(err), "calls of another method are served")
}

func TestLimitForAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hits := bucket("hits", limiter.PerSecond(10), 3)
		cc := serve(t, inMemory(), &service{stream: func(s grpc.ServerStream) error { return send(s, "a") }}, newServer(weirgrpc.Limit(hits)), nil)
		for _, method := range []string{get, put, other} {
			_, err := call(t.Context(), cc, method, "x")
			require.NoError(t, err)
		}
		_, err := call(t.Context(), cc, get, "x")
		require.EqualError(t, err, `rpc error: code = ResourceExhausted desc = refused by limiter "hits", retry in 100ms`)
		require.Equal(t, 100*time.Millisecond, retryAfter(err))

		s, err := openStream(t.Context(), cc, chat)
		require.NoError(t, err)
		require.Equal(t, codes.ResourceExhausted, status.Code(receive(s)), "the limit applies to streams")
		time.Sleep(100 * time.Millisecond)
		s, err = openStream(t.Context(), cc, chat)
		require.NoError(t, err)
		require.NoError(t, receive(s))
		require.Error(t, receive(s))
		require.EqualValues(t, 4, hits.Stats().Allowed)
		require.EqualValues(t, 2, hits.Stats().Refused)
	})
}

func TestShadowLimit(t *testing.T) {
	trial := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "trial", Shadow: true})
	cc := serve(t, overTCP(t), &service{}, newServer(weirgrpc.Limit(trial)), nil)
	for range 3 {
		_, err := call(t.Context(), cc, get, "x")
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, trial.Stats().Shadowed)
}

func TestShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := inflight.New(inflight.Config{Limit: 2, Name: "places"})
		slow := &service{
			unary: func(context.Context, string) (string, error) {
				time.Sleep(time.Second)
				return "done", nil
			},
			stream: func(s grpc.ServerStream) error {
				err := send(s, "a")
				time.Sleep(time.Second)
				return err
			},
		}
		server := weirgrpc.NewServer(weirgrpc.ServerConfig{OnRefusal: func(_ context.Context, e *weirgrpc.RefusedError) {
			require.GreaterOrEqual(t, retryAfter(e), 500*time.Millisecond, "no slot was released for so long")
			require.Less(t, retryAfter(e), time.Second)
		}}, weirgrpc.Shed(places, nil))
		cc := serve(t, inMemory(), slow, server, nil)
		answers := make(chan error, 1)
		go func() {
			_, err := call(t.Context(), cc, get, "")
			answers <- err
		}()
		s, err := openStream(t.Context(), cc, chat)
		require.NoError(t, err)
		require.NoError(t, receive(s))
		synctest.Wait()
		require.Equal(t, 2, places.InFlight(), "a stream is in flight until its handler returns")

		time.Sleep(500 * time.Millisecond)
		_, err = call(t.Context(), cc, get, "")
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.Regexp(t, `^refused by limiter "places", retry in [5-9]\d\dms$`, status.Convert(err).Message())
		require.NoError(t, <-answers)
		require.Error(t, receive(s))
		synctest.Wait()
		require.Zero(t, places.InFlight())
		_, err = call(t.Context(), cc, get, "")
		require.NoError(t, err)
		require.Equal(t, map[string]float64{
			"allowed": 3, "refused": 1, "cancelled": 0, "waited": 0, "near_limit": 1, "waiting": 0, "active": 0, "limit": 2,
		}, metrics(places))
	})
}

func TestDisconnectedClientIsIgnored(t *testing.T) {
	for name, ends := range map[string]error{
		"says so":  context.Canceled,
		"wraps it": errors.New("query: driver: bad connection"),
		"a code":   status.Error(codes.Unavailable, "transport is closing"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := halfOpen()
				places := inflight.New(inflight.Config{Limit: 1, Name: "places"})
				wait := func(ctx context.Context) error {
					<-ctx.Done()
					return ends
				}
				shop := &service{
					unary:  func(ctx context.Context, _ string) (string, error) { return "", wait(ctx) },
					stream: func(s grpc.ServerStream) error { return wait(s.Context()) },
				}
				cc := serve(t, inMemory(), shop, newServer(weirgrpc.Shed(places, nil), weirgrpc.Guard(weirgrpc.ForAll(gate))), nil)

				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				_, err := call(ctx, cc, get, "")
				require.Equal(t, codes.Canceled, status.Code(err))
				synctest.Wait()
				require.Zero(t, places.InFlight())

				ctx, cancel = context.WithCancel(t.Context())
				_, err = openStream(ctx, cc, chat)
				require.NoError(t, err, "the probe slot is free again")
				synctest.Wait()
				require.Equal(t, 1, places.InFlight())
				_ = cc.Close()
				synctest.Wait()
				cancel()
				require.Zero(t, places.InFlight())
				require.Equal(t, breaker.HalfOpen, gate.Breaker().State())
				_, err = gate.Allow(t.Context())
				require.NoError(t, err, "the slot is free a second time")
			})
		})
	}
}

func TestSuccessAfterDisconnectCounts(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	server := newServer(weirgrpc.Guard(weirgrpc.ForAll(gate)))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := server.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) {
		cancel()
		return "done", nil
	})
	require.NoError(t, err)
	require.Equal(t, oneSuccess, outcomes(gate))
}

func TestPanicOfAHandlerIsAFailureAndHoldsNothing(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	places := inflight.New(inflight.Config{Limit: 1, Name: "places"})
	shop := &service{unary: func(context.Context, string) (string, error) { panic("handler") }}
	cc := serve(t, overTCP(t), shop, newServer(weirgrpc.Shed(places, nil), weirgrpc.Guard(weirgrpc.ForAll(gate))), nil)
	_, err := call(t.Context(), cc, get, "")
	require.EqualError(t, err, errPanicked.Error(), "it goes on up")
	require.Equal(t, oneFailure, outcomes(gate))
	require.Zero(t, places.InFlight())
}

func TestLaterRefusalTakesNothing(t *testing.T) {
	gate := weir.New("gate", weir.Config{Rate: limiter.Per(2, time.Hour), Burst: 2})
	hits := bucket("hits", limiter.Per(2, time.Hour), 2)
	keys := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(2, time.Hour), Burst: 2, Name: "keys"})
	places := inflight.New(inflight.Config{Limit: 1, Name: "places"})
	shut := weir.New("shut", weir.Config{})
	shut.Breaker().Force(breaker.ForcedOpen, "")
	shadow := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "shadow", Shadow: true})
	shadow.Take(1)
	panics := func(_ context.Context, c weirgrpc.Call) string {
		if c.Method == put {
			panic("key")
		}
		return ""
	}
	all := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(9, time.Hour), Name: "all"})
	server := newServer(
		weirgrpc.Guard(weirgrpc.ForAll(gate)), weirgrpc.Limit(hits), weirgrpc.Limit(shadow),
		weirgrpc.LimitBy(keys, weirgrpc.ByMethod),
		weirgrpc.Shed(places, nil),
		weirgrpc.LimitBy(all, panics),
		weirgrpc.Guard(weirgrpc.ForAll(shut)),
	)
	cc := serve(t, overTCP(t), &service{}, server, nil)
	for range 5 {
		_, err := call(t.Context(), cc, get, "")
		require.ErrorContains(t, err, `refused by breaker "shut"`)
		_, err = call(t.Context(), cc, put, "")
		require.EqualError(t, err, errPanicked.Error())
	}
	require.Equal(t, window.Totals{Ignored: 10}, outcomes(gate))
	require.Equal(t, 2, gate.Limiter().Take(0).Remaining)
	require.Equal(t, 2, hits.Take(0).Remaining)
	require.Zero(t, shadow.Take(0).Remaining, "a shadow that took nothing must not be refunded")
	require.Equal(t, 2, keys.Get(get).Take(0).Remaining)
	require.Equal(t, 2, keys.Get(put).Take(0).Remaining)
	require.Zero(t, places.InFlight())
}

func TestClassifyOfAServer(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	server := weirgrpc.NewServer(weirgrpc.ServerConfig{Classify: func(err error) breaker.Outcome {
		if status.Code(err) == codes.DeadlineExceeded {
			return breaker.Ignored
		}
		return weirgrpc.DefaultClassify(err)
	}}, weirgrpc.Guard(weirgrpc.ForAll(gate)))
	shop := &service{unary: func(context.Context, string) (string, error) { return "", status.Error(codes.DeadlineExceeded, "") }}
	_, _ = call(t.Context(), serve(t, overTCP(t), shop, server, nil), get, "")
	require.Equal(t, oneIgnored, outcomes(gate))
}

func TestCallsWithoutAGatePass(t *testing.T) {
	none := func(context.Context, weirgrpc.Call) *weir.Gate { return nil }
	cc := serve(t, overTCP(t), &service{stream: func(s grpc.ServerStream) error { return send(s, "a") }}, newServer(weirgrpc.Guard(none)), newClient(none))
	out, err := call(t.Context(), cc, get, "x")
	require.NoError(t, err)
	require.Equal(t, "x", out)
	s, err := openStream(t.Context(), cc, chat)
	require.NoError(t, err)
	require.NoError(t, receive(s))
	require.Error(t, receive(s))
}

func TestMissingArgumentsOfRules(t *testing.T) {
	require.Panics(t, func() { newServer(weirgrpc.Rule{}) })
	require.Panics(t, func() { weirgrpc.Guard(nil) })
	require.Panics(t, func() { weirgrpc.Limit(nil) })
	require.PanicsWithError(t, "weirgrpc: Shed needs a limiter", func() { weirgrpc.Shed(nil, nil) })
	require.Panics(t, func() { weirgrpc.LimitRemote("x", nil, weirgrpc.ByPeer) })
	require.Panics(t, func() { weirgrpc.LimitBy(nil, weirgrpc.ByPeer) })
	require.Panics(t, func() { weirgrpc.LogRefusedCalls(nil) })
}
