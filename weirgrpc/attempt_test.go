package weirgrpc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirgrpc"
)

func TestTheServerIsToldTheNumberOfAnAttempt(t *testing.T) {
	attempts := func(ctx context.Context) string {
		values := metadata.ValueFromIncomingContext(ctx, "grpc-previous-rpc-attempts")
		if len(values) == 0 {
			return "none"
		}
		return values[0]
	}
	s := &service{
		unary:  func(ctx context.Context, _ string) (string, error) { return attempts(ctx), nil },
		stream: func(s grpc.ServerStream) error { return send(s, attempts(s.Context())) },
	}
	gate := weir.New("shop", weir.Config{RetryShare: 0.1, RetryBurst: 2})
	client := weirgrpc.NewClient(func(context.Context, weirgrpc.Call) *weir.Gate { return gate }, weirgrpc.ClientConfig{})
	cc := serve(t, inMemory(), s, nil, client)

	for attempt, want := range []string{"none", "1"} {
		got, err := call(weir.WithAttempt(t.Context(), attempt), cc, get, "")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	stream, err := openStream(weir.WithAttempt(t.Context(), 2), cc, watch)
	require.NoError(t, err)
	require.NoError(t, stream.CloseSend())
	require.NoError(t, receive(stream))

	_, err = call(weir.WithAttempt(t.Context(), 1), cc, get, "")
	_, ok := errors.AsType[*weir.RetryError](err)
	require.True(t, ok, "%v", err)
}
