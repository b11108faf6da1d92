package weirgrpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirgrpc"
)

func TestClientRefusesCallsWithTooLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &service{unary: func(context.Context, string) (string, error) {
			time.Sleep(50 * time.Millisecond)
			return "done", nil
		}}
		cc := serve(t, inMemory(), slow, nil, newClient(weirgrpc.ForAll(weir.New("shop", weir.Config{RefuseHopeless: true}))))
		within := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := call(ctx, cc, get, "")
			return err
		}
		for range 60 {
			require.NoError(t, within(time.Second))
		}
		time.Sleep(100 * time.Millisecond)
		err := within(10 * time.Millisecond)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.NotErrorIs(t, err, weir.ErrRefused, "one per second is sent")
		err = within(10 * time.Millisecond)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, `"shop": the deadline is too near, retry in 1s`, status.Convert(err).Message())
		info, ok := status.Convert(err).Details()[0].(*errdetails.ErrorInfo)
		require.True(t, ok)
		require.Equal(t, "HOPELESS", info.GetReason())
		require.Equal(t, "shop", info.GetMetadata()["name"])
		require.NoError(t, within(60*time.Millisecond))
	})
}
