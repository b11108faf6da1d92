package weirgrpc_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// A call takes a token and waits for a slot until its token does not count any more. The token that
// it then gives back must not allow one more call.
func TestATokenThatIsGivenBackLateAllowsNoMoreCalls(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		tokens := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 5, Window: 100 * ms, Name: "calls"})
		flight := inflight.New(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: 50 * ms, Interval: 150 * ms}})
		server := weirgrpc.NewServer(weirgrpc.ServerConfig{}, weirgrpc.Limit(tokens), weirgrpc.Shed(flight, nil))
		cc := serve(t, inMemory(), &service{}, server, nil)
		held, err := flight.TryAcquire(t.Context())
		require.NoError(t, err)
		refused := make(chan error)
		go func() {
			_, err := call(t.Context(), cc, get, "")
			refused <- err
		}()
		time.Sleep(110 * ms)
		for range 5 {
			require.True(t, tokens.Take(1).OK)
		}
		require.Error(t, <-refused)
		require.False(t, tokens.Take(1).OK, "the sixth in 100 ms")
		time.Sleep(60 * ms)
		require.True(t, tokens.Take(1).OK)

		// in time, the token is given back
		time.Sleep(100 * ms)
		go func() {
			_, err := call(t.Context(), cc, get, "")
			refused <- err
		}()
		synctest.Wait()
		require.Equal(t, 4, tokens.Take(0).Remaining)
		require.NoError(t, flight.Reconfigure(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: ms, Interval: ms}}))
		require.Error(t, <-refused)
		require.Equal(t, 5, tokens.Take(0).Remaining)
		held.Done(t.Context(), nil)
	})
}
