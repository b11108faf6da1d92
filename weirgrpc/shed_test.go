package weirgrpc_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirgrpc"
)

// A queue with room for one call keeps the one that matters most.
func TestShedKnowsPrioritiesAndRetries(t *testing.T) {
	for name, c := range map[string]struct {
		first, second []string // metadata
		stays         int
	}{
		"the same":          {nil, nil, 0},
		"a retry":           {[]string{"grpc-previous-rpc-attempts", "1"}, nil, 1},
		"a first attempt":   {[]string{"grpc-previous-rpc-attempts", "0"}, nil, 0},
		"a higher priority": {nil, []string{"vip", "1"}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			slow := &service{unary: func(context.Context, string) (string, error) {
				time.Sleep(time.Second)
				return "done", nil
			}}
			flight := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 1, Queue: inflight.Queue{Target: time.Minute}, Name: "slots"})
			rule := weirgrpc.Shed(flight, func(ctx context.Context, _ weirgrpc.Call) (c inflight.Caller) {
				if len(metadata.ValueFromIncomingContext(ctx, "vip")) > 0 {
					c.Priority = inflight.Critical
				}
				return c
			})
			cc := serve(t, inMemory(), slow, newServer(rule), nil)
			var answers [3]chan error
			for i, pairs := range [][]string{nil, c.first, c.second} {
				answers[i] = make(chan error, 1)
				go func() {
					_, err := call(metadata.AppendToOutgoingContext(t.Context(), pairs...), cc, get, "")
					answers[i] <- err
				}()
				synctest.Wait()
			}
			require.NoError(t, <-answers[0])
			require.NoError(t, <-answers[1+c.stays], name)
			require.Equal(t, codes.ResourceExhausted, status.Code(<-answers[2-c.stays]), name)
			synctest.Wait()
			require.Zero(t, flight.InFlight())
		})
	}
}

// Without a function, the caller is that of the context, and a retry does not change its priority.
// A queue that has lost its Target lets no call wait.
func TestShedKnowsTheCallerOfTheContextAndAReconfiguredQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flight := inflight.New(inflight.Config{Limit: 1, MaxWaiters: 1, Queue: inflight.Queue{Target: time.Minute}})
		s := newServer(weirgrpc.Shed(flight, nil))
		start := func(ctx context.Context) <-chan error {
			answer := make(chan error, 1)
			go func() {
				_, err := s.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(context.Context, any) (any, error) {
					time.Sleep(time.Second)
					return "", nil
				})
				answer <- err
			}()
			synctest.Wait()
			return answer
		}
		retry := metadata.NewIncomingContext(t.Context(), metadata.Pairs("grpc-previous-rpc-attempts", "1"))
		first := start(t.Context())
		important := start(inflight.WithCaller(retry, inflight.Caller{Priority: inflight.Critical}))
		other := start(t.Context())
		require.Equal(t, codes.ResourceExhausted, status.Code(<-other))
		require.NoError(t, <-first)

		require.NoError(t, flight.Reconfigure(inflight.Config{Limit: 1}))
		require.Equal(t, codes.ResourceExhausted, status.Code(<-start(t.Context())))
		require.Equal(t, 1, flight.InFlight(), "it was refused at once")
		require.NoError(t, flight.Reconfigure(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: time.Minute}}))
		last := start(t.Context())
		require.NoError(t, <-important)
		require.NoError(t, <-last)
	})
}

func TestShedReleasesTheWaiterOfADisconnectedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &service{unary: func(context.Context, string) (string, error) {
			time.Sleep(time.Second)
			return "done", nil
		}}
		flight := inflight.New(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: time.Minute}, Name: "slots"})
		cc := serve(t, inMemory(), slow, newServer(weirgrpc.Shed(flight, nil)), nil)
		first := make(chan error, 1)
		go func() {
			_, err := call(t.Context(), cc, get, "")
			first <- err
		}()
		synctest.Wait()
		// a deadline would end the wait on the server too
		ctx, cancel := context.WithCancel(t.Context())
		var waiting int
		time.AfterFunc(100*time.Millisecond, func() {
			waiting = int(flight.Stats().Waiting)
			cancel()
		})
		_, err := call(ctx, cc, get, "")
		require.Equal(t, codes.Canceled, status.Code(err))
		require.Equal(t, 1, waiting)
		synctest.Wait()
		require.Zero(t, flight.Stats().Waiting)
		require.NoError(t, <-first)
		_, err = call(t.Context(), cc, get, "")
		require.NoError(t, err)
	})
}

// Watches stay open, beside calls of 2 ms. A watch has answered with its first message, so the
// server is not slow, and refuses nothing.
func TestWatchesBehindAShedAreNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const watches = 200
		flight := inflight.New(inflight.Config{Adaptive: true})
		s := &service{
			unary: func(context.Context, string) (string, error) {
				time.Sleep(2 * time.Millisecond)
				return "done", nil
			},
			stream: func(s grpc.ServerStream) error {
				err := send(s, "a")
				<-s.Context().Done()
				return err
			},
		}
		cc := serve(t, inMemory(), s, newServer(weirgrpc.Shed(flight, nil)), nil)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for range 50 {
			_, err := call(ctx, cc, get, "")
			require.NoError(t, err)
		}
		for range watches { // no call ends
			watch, err := openStream(ctx, cc, chat)
			require.NoError(t, err)
			require.NoError(t, receive(watch))
			time.Sleep(20 * time.Millisecond)
		}
		for range 2000 {
			_, err := call(ctx, cc, get, "")
			require.NoError(t, err)
			time.Sleep(5 * time.Millisecond)
		}
		require.Equal(t, watches, flight.InFlight())
	})
}
