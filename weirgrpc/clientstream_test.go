package weirgrpc_test

import (
	"cmp"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirgrpc"
	"github.com/weir-go/weir/window"
)

// outcomes returns the counts of the gate.
func outcomes(g *weir.Gate) window.Totals {
	t := g.Totals()
	return window.Totals{Successes: t.Successes, Failures: t.Failures, Ignored: t.Ignored}
}

var (
	oneSuccess = window.Totals{Successes: 1}
	oneFailure = window.Totals{Failures: 1}
	oneIgnored = window.Totals{Ignored: 1}
	nothingYet = window.Totals{}
)

func TestOutcomeOfAClientStream(t *testing.T) {
	broken := status.Error(codes.Internal, "broken")
	for name, step := range map[string]struct {
		stream func(grpc.ServerStream) error
		want   window.Totals // after the first answer
	}{
		"a message":             {func(s grpc.ServerStream) error { return send(s, "a") }, oneSuccess},
		"many messages":         {func(s grpc.ServerStream) error { return send(s, "a", "b", "c") }, oneSuccess},
		"a message, then fails": {func(s grpc.ServerStream) error { return cmp.Or(send(s, "a"), broken) }, oneSuccess},
		"no message":            {func(grpc.ServerStream) error { return nil }, oneSuccess},
		"fails at once":         {func(grpc.ServerStream) error { return broken }, oneFailure},
		"headers, then fails":   {func(s grpc.ServerStream) error { return cmp.Or(s.SendHeader(metadata.MD{}), broken) }, oneFailure},
		"no verdict":            {func(grpc.ServerStream) error { return status.Error(codes.Canceled, "") }, oneIgnored},
		"not found":             {func(grpc.ServerStream) error { return status.Error(codes.NotFound, "") }, oneSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			gate, asked := weir.New("shop", weir.Config{}), 0
			client := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{Classify: func(err error) breaker.Outcome {
				asked++
				return weirgrpc.DefaultClassify(err)
			}})
			cc := serve(t, overTCP(t), &service{stream: step.stream}, nil, client)
			s, err := openStream(t.Context(), cc, chat)
			require.NoError(t, err)
			err = receive(s)
			require.Equal(t, step.want, outcomes(gate))
			for err == nil {
				err = receive(s)
			}
			require.Equal(t, step.want, outcomes(gate))
			require.Equal(t, 1, asked, "a stream has one outcome")
		})
	}
}

// halfOpen returns a half-open gate with one probe slot.
func halfOpen() *weir.Gate {
	gate := weir.New("shop", weir.Config{Breaker: breaker.Config{Recovery: breaker.Off, Cooldown: time.Millisecond, MinCalls: 9, Probes: 1, ProbeTimeout: time.Hour}})
	gate.Breaker().OpenFor(0)
	return gate
}

// sendOnlyHeaders is a handler that sends only headers.
func sendOnlyHeaders(s grpc.ServerStream) error {
	if err := s.SendHeader(metadata.Pairs("server", "up")); err != nil {
		return err
	}
	<-s.Context().Done()
	return s.Context().Err()
}

func TestAbandonedStreamReleasesItsSlot(t *testing.T) {
	for name, step := range map[string]struct {
		abandon func(s grpc.ClientStream, cancel func(), cc *grpc.ClientConn)
		want    breaker.State
	}{
		"cancelled": {func(_ grpc.ClientStream, cancel func(), _ *grpc.ClientConn) { cancel() }, breaker.HalfOpen},
		"cancelled while it is read": {func(s grpc.ClientStream, cancel func(), _ *grpc.ClientConn) {
			time.AfterFunc(time.Second, cancel)
			_ = receive(s)
		}, breaker.HalfOpen},
		"connection closed": {func(_ grpc.ClientStream, _ func(), cc *grpc.ClientConn) { _ = cc.Close() }, breaker.HalfOpen},
		"deadline passed":   {func(grpc.ClientStream, func(), *grpc.ClientConn) { time.Sleep(time.Minute) }, breaker.Open},
		"cannot be sent":    {func(s grpc.ClientStream, _ func(), _ *grpc.ClientConn) { _ = s.SendMsg("no message") }, breaker.Open},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := halfOpen()
				cc := serve(t, inMemory(), &service{stream: sendOnlyHeaders}, nil, newClient(weirgrpc.ForAll(gate)))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s, err := openStream(ctx, cc, chat)
				require.NoError(t, err)
				md, err := s.Header()
				require.NoError(t, err)
				require.Equal(t, []string{"up"}, md["server"])
				synctest.Wait()
				require.Equal(t, breaker.HalfOpen, gate.Breaker().State(), "headers alone have no outcome")
				_, err = openStream(ctx, cc, chat)
				require.ErrorIs(t, err, breaker.ErrOpen, "the probe slot is taken")

				step.abandon(s, cancel, cc)
				synctest.Wait()
				require.Equal(t, step.want, gate.Breaker().State())
				time.Sleep(time.Millisecond) // the cooldown of an open breaker
				_, err = gate.Allow(t.Context())
				require.NoError(t, err, "the probe slot is free")
			})
		})
	}
}

func TestOutcomeOfAStreamThatDoesNotBegin(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	nobody := overTCP(t)
	require.NoError(t, nobody.listener.Close())
	cc := connect(t, nobody, newClient(weirgrpc.ForAll(gate)))
	_, err := openStream(t.Context(), cc, chat)
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, oneFailure, outcomes(gate))

	_, err = openStream(metadata.AppendToOutgoingContext(t.Context(), "bad\n", "x"), cc, chat)
	require.Equal(t, codes.Internal, status.Code(err))
	require.Equal(t, window.Totals{Failures: 2}, outcomes(gate))
}

func TestCancelledStreamIsIgnored(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	strict := weirgrpc.ClientConfig{Classify: func(error) breaker.Outcome { return breaker.Failure }}
	cc := serve(t, overTCP(t), &service{stream: sendOnlyHeaders}, nil, weirgrpc.NewClient(weirgrpc.ForAll(gate), strict))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := openStream(ctx, cc, chat)
	require.NoError(t, err)
	cancel()
	require.Equal(t, codes.Canceled, status.Code(receive(s)))
	require.Equal(t, oneIgnored, outcomes(gate))
}

// endedStream is a stream that an interceptor made, and that has ended.
type endedStream struct{ grpc.ClientStream }

func (endedStream) RecvMsg(any) error { return io.EOF }

func TestStreamsOfOtherInterceptors(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	client := newClient(weirgrpc.ForAll(gate))
	cc := connect(t, network{target: "passthrough:///nowhere"}, nil)
	begin := func(s grpc.ClientStream, err error) (grpc.ClientStream, error) {
		return client.Stream(t.Context(), nil, cc, chat, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return s, err
		})
	}
	s, err := begin(endedStream{}, nil)
	require.NoError(t, err)
	require.Equal(t, nothingYet, outcomes(gate))
	require.Equal(t, io.EOF, receive(s))
	require.Equal(t, oneSuccess, outcomes(gate))

	_, err = begin(nil, status.Error(codes.Unavailable, ""))
	require.Error(t, err)
	require.Equal(t, window.Totals{Successes: 1, Failures: 1}, outcomes(gate))
}

func TestRefusedStreamIsNotBegun(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	cc := connect(t, network{target: "passthrough:///nowhere"}, newClient(weirgrpc.ForAll(gate)))
	_, err := openStream(t.Context(), cc, chat)
	require.ErrorIs(t, err, breaker.ErrOpen)
	require.Equal(t, codes.Unavailable, status.Code(err))
}

// The outcome of a call with one answer is that of its status, which follows the message.
func TestOutcomeOfAnUpload(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	cc := serve(t, overTCP(t), &service{stream: func(s grpc.ServerStream) error {
		return cmp.Or(s.RecvMsg(new(wrapperspb.StringValue)), send(s, "half"), status.Error(codes.DataLoss, ""))
	}}, nil, newClient(weirgrpc.ForAll(gate)))
	s, err := cc.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, chat)
	require.NoError(t, err)
	require.NoError(t, s.SendMsg(wrapperspb.String("x")))
	require.NoError(t, s.CloseSend())
	require.Equal(t, codes.DataLoss, status.Code(receive(s)))
	require.Equal(t, oneFailure, outcomes(gate))
}

func TestStreamsWorkAsWithoutInterceptors(t *testing.T) {
	echo := &service{stream: func(s grpc.ServerStream) error {
		for {
			m := new(wrapperspb.StringValue)
			if err := s.RecvMsg(m); err != nil {
				return nil // the client has sent all messages
			}
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
	}}
	gate := weir.New("shop", weir.Config{})
	cc := serve(t, overTCP(t), echo, nil, newClient(weirgrpc.ForAll(gate)))
	finished := make(chan error, 1)
	s, err := openStream(t.Context(), cc, chat, grpc.OnFinish(func(err error) { finished <- err }))
	require.NoError(t, err)
	require.Equal(t, nothingYet, outcomes(gate))
	for range 3 {
		require.NoError(t, s.SendMsg(wrapperspb.String("x")))
		require.NoError(t, receive(s))
		require.Equal(t, oneSuccess, outcomes(gate))
	}
	require.NoError(t, s.CloseSend())
	require.Equal(t, io.EOF, receive(s))
	require.NoError(t, <-finished, "the OnFinish of the caller is called")
}
