package weirgrpc_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirgrpc"
	"github.com/weir-go/weir/window"
)

// classifyAllAsFailures classifies everything as a failure.
func classifyAllAsFailures(error) breaker.Outcome { return breaker.Failure }

// cancelTexts lists texts of errors that a cancelled call may return. They come from gRPC, a proxy,
// a reset stream or an interceptor.
var cancelTexts = []error{
	context.Canceled, io.ErrUnexpectedEOF, errors.New("hedge: the other was faster"),
	status.Error(codes.Canceled, "context canceled"), status.Error(codes.Unavailable, "transport is closing"),
	status.Error(codes.Internal, "stream terminated by RST_STREAM"), status.Error(codes.Unknown, "broken pipe"),
	status.Error(codes.DeadlineExceeded, "upstream"), status.Error(codes.ResourceExhausted, "too many pings"),
}

// manyCancelled are the counts of a gate after 40 cancelled calls with each of the errors.
var manyCancelled = window.Totals{Ignored: 40 * int64(len(cancelTexts))}

func eachCancelled(t *testing.T, call func(ctx context.Context, cancel func(), word error)) {
	for _, word := range cancelTexts {
		for range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			call(ctx, cancel, word)
			cancel()
		}
	}
}

// failingStream is a stream that fails before its first message arrives.
type failingStream struct {
	grpc.ClientStream
	err error
}

func (s failingStream) RecvMsg(any) error { return s.err }

func TestCancelledCallsOfAClientAreIgnored(t *testing.T) {
	for _, classify := range []func(error) breaker.Outcome{nil, classifyAllAsFailures} {
		gate := weir.New("shop", weir.Config{})
		client := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{Classify: classify})
		cc := connect(t, network{target: "passthrough:///nowhere"}, nil)
		eachCancelled(t, func(ctx context.Context, cancel func(), word error) {
			err := client.Unary(ctx, get, nil, nil, cc, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				cancel()
				return word
			})
			require.Equal(t, word, err)
		})
		require.Equal(t, manyCancelled, outcomes(gate))

		streams := weir.New("shop", weir.Config{})
		client = weirgrpc.NewClient(weirgrpc.ForAll(streams), weirgrpc.ClientConfig{Classify: classify})
		eachCancelled(t, func(ctx context.Context, cancel func(), word error) {
			s, err := client.Stream(ctx, nil, cc, chat, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return failingStream{err: word}, nil
			})
			require.NoError(t, err)
			cancel()
			require.Equal(t, word, receive(s))
		})
		eachCancelled(t, func(ctx context.Context, cancel func(), word error) {
			_, err := client.Stream(ctx, nil, cc, chat, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				cancel()
				return nil, word
			})
			require.Equal(t, word, err)
		})
		require.Equal(t, window.Totals{Ignored: 2 * manyCancelled.Ignored}, outcomes(streams))
	}
}

// handlerStream is the stream of a handler.
type handlerStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s handlerStream) Context() context.Context { return s.ctx }

func TestCallsOfDisconnectedClientsAreIgnored(t *testing.T) {
	for _, classify := range []func(error) breaker.Outcome{nil, classifyAllAsFailures} {
		gate := weir.New("shop", weir.Config{})
		server := weirgrpc.NewServer(weirgrpc.ServerConfig{Classify: classify}, weirgrpc.Guard(weirgrpc.ForAll(gate)))
		eachCancelled(t, func(ctx context.Context, cancel func(), word error) {
			_, _ = server.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) {
				cancel()
				return nil, word
			})
		})
		eachCancelled(t, func(ctx context.Context, cancel func(), word error) {
			_ = server.Stream(nil, handlerStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: chat}, func(any, grpc.ServerStream) error {
				cancel()
				return word
			})
		})
		require.Equal(t, window.Totals{Ignored: 2 * manyCancelled.Ignored}, outcomes(gate))
	}
}

// A hedging client cancels the slower call. Neither side counts that as a failure, whatever the
// handler returns.
func TestHedgedCallsDoNotOpenABreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := weir.New("here", weir.Config{}), weir.New("there", weir.Config{})
		slow := func(ctx context.Context) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return status.Error(codes.Internal, "the query was interrupted")
			}
		}
		shop := &service{
			unary:  func(ctx context.Context, in string) (string, error) { return in, slow(ctx) },
			stream: func(s grpc.ServerStream) error { return slow(s.Context()) },
		}
		server := weirgrpc.NewServer(weirgrpc.ServerConfig{}, weirgrpc.Guard(weirgrpc.ForAll(there)))
		cc := serve(t, inMemory(), shop, server, newClient(weirgrpc.ForAll(here)))
		for i := range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Millisecond, cancel)
			if i%2 == 0 {
				_, _ = call(ctx, cc, get, "")
				continue
			}
			s, err := openStream(ctx, cc, chat)
			require.NoError(t, err)
			_ = receive(s)
		}
		synctest.Wait()
		require.Equal(t, window.Totals{Ignored: 40}, outcomes(here))
		require.Equal(t, window.Totals{Ignored: 40}, outcomes(there))
	})
}

func TestCancelledProbesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := halfOpen()
		hang := true
		shop := &service{unary: func(ctx context.Context, in string) (string, error) {
			if hang {
				<-ctx.Done()
				return "", status.Error(codes.Internal, "interrupted")
			}
			return in, nil
		}}
		cc := serve(t, inMemory(), shop, nil, newClient(weirgrpc.ForAll(gate)))
		for range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			_, err := call(ctx, cc, get, "")
			require.NotErrorIs(t, err, weir.ErrRefused, "the probe slot is free again")
		}
		synctest.Wait()
		hang = false
		_, err := call(t.Context(), cc, get, "")
		require.NoError(t, err)
		require.Equal(t, breaker.Closed, gate.Breaker().State())
	})
}
