package weirgrpc_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirgrpc"
	"github.com/weir-go/weir/window"
)

func TestOutcomeOfAServerStream(t *testing.T) {
	broken := status.Error(codes.Internal, "broken")
	for name, step := range map[string]struct {
		stream func(grpc.ServerStream) error
		want   window.Totals
	}{
		"a message":               {func(s grpc.ServerStream) error { return send(s, "a") }, oneSuccess},
		"a message, then fails":   {func(s grpc.ServerStream) error { return cmp.Or(send(s, "a"), broken) }, oneSuccess},
		"a message, then panics":  {func(s grpc.ServerStream) error { panic(send(s, "a")) }, oneSuccess},
		"no message":              {func(grpc.ServerStream) error { return nil }, oneSuccess},
		"fails at once":           {func(grpc.ServerStream) error { return broken }, oneFailure},
		"headers, then fails":     {func(s grpc.ServerStream) error { return cmp.Or(s.SendHeader(nil), broken) }, oneFailure},
		"a message that is none":  {func(s grpc.ServerStream) error { return s.SendMsg("no message") }, oneFailure},
		"panics":                  {func(grpc.ServerStream) error { panic("at once") }, oneFailure},
		"refused by another gate": {func(grpc.ServerStream) error { return &breaker.OpenError{} }, oneIgnored},
	} {
		t.Run(name, func(t *testing.T) {
			gate := weir.New("shop", weir.Config{})
			places := inflight.New(inflight.Config{Limit: 1, Name: "places"})
			server := newServer(weirgrpc.Shed(places, nil), weirgrpc.Guard(weirgrpc.ForAll(gate)))
			cc := serve(t, overTCP(t), &service{stream: step.stream}, server, nil)
			s, err := openStream(t.Context(), cc, chat)
			require.NoError(t, err)
			for err == nil {
				err = receive(s)
			}
			// If a message cannot be sent, the client gets the error before the handler returns.
			require.Eventually(t, func() bool { return places.InFlight() == 0 }, time.Minute, time.Millisecond)
			require.Equal(t, step.want, outcomes(gate))
		})
	}
}

func TestOutcomeIsKnownAfterTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := halfOpen()
		hang := func(s grpc.ServerStream) error {
			err := send(s, "a")
			<-s.Context().Done()
			return err
		}
		cc := serve(t, inMemory(), &service{stream: hang}, newServer(weirgrpc.Guard(weirgrpc.ForAll(gate))), nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := openStream(ctx, cc, chat)
		require.NoError(t, err)
		require.NoError(t, receive(s))
		synctest.Wait() // the client may get the message before SendMsg returns
		require.Equal(t, breaker.Closed, gate.Breaker().State(), "the probe has succeeded")
	})
}
