package weirgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// gatesOfEachKind returns gates of each kind. No gate refuses a call until the gate is held.
func gatesOfEachKind() map[string]gateFunc {
	rate := weir.Config{Rate: limiter.PerSecond(1000)}
	in := func(s breaker.State) weir.Config { return weir.Config{Breaker: breaker.Config{Force: s}} }
	small := weir.NewGroup[string]("shop", weir.GroupConfig{MaxKeys: 1})
	_ = small.Get("busy").Run(context.Background(), func(context.Context) error { return errors.New("down") })
	return map[string]gateFunc{
		"method":       gatePerMethod("shop", weir.Config{}),
		"service":      gatePerService("shop", rate),
		"target":       gatePerTarget("shop", weir.Config{Rate: limiter.Unlimited()}),
		"one":          weirgrpc.ForAll(weir.New("shop", weir.Config{})),
		"joined":       weirgrpc.ForAll(weir.Join("shop", weir.Parts{Breaker: breaker.New("b", breaker.Config{})})),
		"shadow":       gatePerMethod("shop", in(breaker.Shadow)),
		"forced":       gatePerMethod("shop", in(breaker.ForcedClosed)),
		"disabled":     gatePerMethod("shop", in(breaker.Disabled)),
		"without room": weirgrpc.Per(small, func(_ context.Context, c weirgrpc.Call) string { return c.Method }),
	}
}

// methodCalls maps two methods to functions that call them: a unary one, and one with a stream.
var methodCalls = map[string]func(ctx context.Context, cc *grpc.ClientConn) error{
	get: func(ctx context.Context, cc *grpc.ClientConn) error {
		_, err := call(ctx, cc, get, "")
		return err
	},
	chat: func(ctx context.Context, cc *grpc.ClientConn) error {
		s, err := openStream(ctx, cc, chat)
		if err == nil {
			err = receive(s)
		}
		return err
	},
}

// busyShop returns a service that refuses all calls with a RetryInfo, and counts the calls.
func busyShop(wait time.Duration, served *int) *service {
	answer := func() error {
		*served++
		return errorWithRetryInfo(codes.ResourceExhausted, durationpb.New(wait))
	}
	return &service{
		unary:  func(context.Context, string) (string, error) { return "", answer() },
		stream: func(grpc.ServerStream) error { return answer() },
	}
}

func TestRetryAfterOfAServerIsObeyed(t *testing.T) {
	lenient := func(error) breaker.Outcome { return breaker.Success }
	for name := range gatesOfEachKind() {
		for method, ask := range methodCalls {
			for _, classify := range []func(error) breaker.Outcome{nil, lenient} {
				synctest.Test(t, func(t *testing.T) {
					served := 0
					client := weirgrpc.NewClient(gatesOfEachKind()[name], weirgrpc.ClientConfig{Classify: classify})
					cc := serve(t, inMemory(), busyShop(30*time.Second, &served), nil, client)
					require.NotErrorIs(t, ask(t.Context(), cc), weir.ErrRefused)
					for range 3 {
						err := ask(t.Context(), cc)
						require.Equalf(t, 1, served, "%s %s", name, method)
						refused, ok := errors.AsType[*weirgrpc.RefusedError](err)
						require.True(t, ok, err)
						require.ErrorContains(t, refused.Err, string(limiter.Held))
						held := weir.RetryAfter(err)
						require.GreaterOrEqual(t, held, 30*time.Second)
						require.Less(t, held, 33*time.Second)
						require.EqualError(t, err, fmt.Sprintf("weirgrpc: %s refused: \"shop\": the service asked to wait, retry after %v", method, held.Round(time.Millisecond)))
						told := (held + time.Millisecond - 1).Truncate(time.Millisecond)
						require.Equal(t, told, retryAfter(err))
						require.Equal(t, fmt.Sprintf(`"shop": the service asked to wait, retry in %v`, told), status.Convert(err).Message())
						require.Equal(t, codes.ResourceExhausted, status.Code(err))
						info, _ := firstDetail[*errdetails.ErrorInfo](err)
						require.Equal(t, "HELD", info.GetReason())
					}
					time.Sleep(33*time.Second + time.Millisecond)
					require.NotErrorIs(t, ask(t.Context(), cc), weir.ErrRefused)
					require.Equal(t, 2, served)
				})
			}
		}
	}
}

// The outcome of a stream with messages does not change, but a RetryInfo at its end is obeyed once.
func TestRetryInfoAtTheEndOfAStreamIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("shop", weir.Config{})
		shop := &service{stream: func(s grpc.ServerStream) error {
			if err := send(s, "a", "b"); err != nil {
				return err
			}
			return errorWithRetryInfo(codes.Unavailable, durationpb.New(30*time.Second))
		}}
		cc := serve(t, inMemory(), shop, nil, newClient(weirgrpc.ForAll(gate)))
		s, err := openStream(t.Context(), cc, chat)
		require.NoError(t, err)
		require.NoError(t, receive(s))
		require.NoError(t, receive(s))
		require.Equal(t, codes.Unavailable, status.Code(receive(s)))
		require.Equal(t, oneSuccess, outcomes(gate))
		time.Sleep(10 * time.Second)
		require.Equal(t, codes.Unavailable, status.Code(receive(s)), "the same error must not hold the gate again")
		_, err = openStream(t.Context(), cc, chat)
		require.ErrorIs(t, err, weir.ErrRefused)
		held := weir.RetryAfter(err)
		require.GreaterOrEqual(t, held, 20*time.Second)
		require.Less(t, held, 23*time.Second)

		time.Sleep(held)
		ctx, cancel := context.WithCancel(t.Context())
		s, err = openStream(ctx, cc, chat)
		require.NoError(t, err)
		require.NoError(t, receive(s))
		cancel()
		synctest.Wait()
		_ = receive(s)
		require.NoError(t, gate.Run(t.Context(), func(context.Context) error { return nil }), "a cancelled stream must not hold the gate")
	})
}

func TestRefusalOfAnInnerGateIsNotARetryInfo(t *testing.T) {
	inner := newClient(weirgrpc.ForAll(weir.New("inner", weir.Config{Rate: limiter.Per(1, time.Hour)})))
	outer := weir.New("outer", weir.Config{})
	over := overTCP(t)
	over.dial = []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		weirgrpc.NewClient(weirgrpc.ForAll(outer), weirgrpc.ClientConfig{Classify: classifyAllAsFailures}).Unary, inner.Unary)}
	cc := serve(t, over, &service{}, nil, nil)
	_, err := call(t.Context(), cc, get, "")
	require.NoError(t, err)
	for range 3 {
		_, err = call(t.Context(), cc, get, "")
		require.ErrorContains(t, err, "limiter inner")
	}
	require.EqualValues(t, 4, outer.Totals().Failures, "the outer gate has allowed all calls")
}

// pushbackTrailers returns the grpc-retry-pushback-ms of calls that the rule refuses, by method.
func pushbackTrailers(t *testing.T, rule weirgrpc.Rule) map[string][]string {
	cc := serve(t, overTCP(t), &service{stream: func(grpc.ServerStream) error { return nil }}, newServer(rule), nil)
	said := map[string][]string{}
	var md metadata.MD
	_, err := call(t.Context(), cc, get, "", grpc.Trailer(&md))
	require.Error(t, err)
	said[get] = md.Get("grpc-retry-pushback-ms")
	s, err := openStream(t.Context(), cc, chat)
	require.NoError(t, err)
	require.Error(t, receive(s))
	said[chat] = s.Trailer().Get("grpc-retry-pushback-ms")
	return said
}

func TestServerSendsPushback(t *testing.T) {
	empty := bucket("hits", limiter.Per(1, time.Hour), 1)
	empty.Take(1)
	year := bucket("year", limiter.Per(1, 366*24*time.Hour), 1)
	year.Take(1)
	forced := weir.New("forced", weir.Config{Breaker: breaker.Config{Force: breaker.ForcedOpen}})
	held := weir.New("held", weir.Config{Breaker: breaker.Config{CooldownJitter: breaker.Off}})
	held.Hold(time.Hour)
	for name, c := range map[string]struct {
		rule        weirgrpc.Rule
		least, most int64
	}{
		"a limit":                   {weirgrpc.Limit(empty), 3_500_000, 3_600_000},
		"a hold":                    {weirgrpc.Guard(weirgrpc.ForAll(held)), 3_500_000, 3_600_000},
		"more than an int32":        {weirgrpc.Limit(year), math.MaxInt32, math.MaxInt32},
		"what is never let through": {weirgrpc.Limit(bucket("none", limiter.Per(1, time.Hour), limiter.Off)), -1, -1},
		// its cooldown
		"a breaker forced open": {weirgrpc.Guard(weirgrpc.ForAll(forced)), 1000, 1000},
	} {
		for method, said := range pushbackTrailers(t, c.rule) {
			require.Len(t, said, 1, "%s %s", name, method)
			ms, err := strconv.ParseInt(said[0], 10, 64)
			require.NoError(t, err)
			require.True(t, c.least <= ms && ms <= c.most, "%s %s: %s", name, method, said[0])
		}
	}
}

// Retries of gRPC wait as long as the server says, and not for their backoff of 1ms.
func TestRetriesOfGRPCObeyPushback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := inMemory()
		over.dial = append(over.dial, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]
		}}]}`))
		cc := serve(t, over, &service{}, newServer(weirgrpc.Limit(bucket("hits", limiter.PerMinute(1), 1))), nil)
		began := time.Now()
		for range 3 {
			_, err := call(t.Context(), cc, get, "")
			require.NoError(t, err)
		}
		require.InDelta(t, 2*time.Minute, time.Since(began), float64(10*time.Millisecond))
	})
}
