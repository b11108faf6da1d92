package weirgrpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirgrpc"
)

// A call of a client occupies its slot until its outcome is known: for a stream, until its first
// message.
func TestClientBoundsCallsInFlight(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			testCallsInFlight(t, weir.New("shop", weir.Config{MaxConcurrent: 1, Adaptive: adaptive}))
		})
	}
}

func testCallsInFlight(t *testing.T, gate *weir.Gate) {
	slow := &service{
		unary: func(context.Context, string) (string, error) {
			time.Sleep(time.Second)
			return "done", nil
		},
		stream: func(s grpc.ServerStream) error {
			time.Sleep(time.Second)
			err := send(s, "a")
			<-s.Context().Done()
			return err
		},
	}
	cc := serve(t, inMemory(), slow, nil, newClient(weirgrpc.ForAll(gate)))
	first := make(chan error, 1)
	go func() {
		_, err := call(t.Context(), cc, get, "")
		first <- err
	}()
	synctest.Wait()
	_, err := call(t.Context(), cc, get, "")
	require.ErrorIs(t, err, inflight.ErrFull)
	require.ErrorIs(t, err, weir.ErrRefused)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, `inflight limiter "shop" is full (limit 1), retry after `)
	require.Positive(t, retryAfter(err))
	require.NoError(t, <-first)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := openStream(ctx, cc, chat)
	require.NoError(t, err)
	_, err = call(t.Context(), cc, get, "")
	require.ErrorIs(t, err, inflight.ErrFull, "the stream has no message yet")
	require.NoError(t, receive(s))
	_, err = call(t.Context(), cc, get, "")
	require.NoError(t, err, "the stream has had its first message")
}
