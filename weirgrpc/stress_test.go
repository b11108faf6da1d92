package weirgrpc_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirgrpc"
)

// faultyService answers, fails, panics, is late or waits, with a different behaviour for each call.
type faultyService struct{ calls atomic.Int64 }

func (h *faultyService) behave(ctx context.Context) error {
	switch h.calls.Add(1) % 7 {
	case 0:
		panic("hostile")
	case 1:
		return status.Error(codes.Internal, "broken")
	case 2:
		return errors.New("plain")
	case 3:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// receivePart reads nothing from a stream, one message, or all, for way 0 to 2.
func receivePart(s grpc.ClientStream, err error, way int) {
	for n := 0; err == nil && (way == 2 || n < way); n++ {
		err = receive(s)
	}
}

// Calls end in all ways. Each is counted once on both sides, and nothing is held afterwards.
func TestEveryCallIsCountedOnceUnderLoad(t *testing.T) {
	const callers, rounds = 16, 60
	never := weir.Config{Breaker: breaker.Config{FailureRate: breaker.Off}}
	near, far := weir.New("near", never), weir.New("far", never)
	places := inflight.New(inflight.Config{Limit: callers / 4, Name: "places"})
	h := &faultyService{}
	shop := &service{
		unary:  func(ctx context.Context, in string) (string, error) { return in, h.behave(ctx) },
		stream: func(s grpc.ServerStream) error { return errors.Join(h.behave(s.Context()), send(s, "a", "b")) },
	}
	cc := serve(t, overTCP(t), shop, newServer(weirgrpc.Shed(places, nil), weirgrpc.Guard(weirgrpc.ForAll(far))), newClient(weirgrpc.ForAll(near)))

	var sent atomic.Int64
	over := func() grpc.CallOption {
		var once sync.Once // gRPC calls it twice if the context ends while a stream is made
		return grpc.OnFinish(func(error) { once.Do(func() { sent.Add(1) }) })
	}

	patience := []time.Duration{1, 2, 3, 4, 100}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), patience[n%len(patience)]*time.Millisecond)
				s, err := openStream(ctx, cc, chat, over())
				receivePart(s, err, (i+n)%3)
				if n%2 == 0 {
					cancel()
				}
				_, _ = call(ctx, cc, get, "x", over())
				cancel()
			}
		})
	}
	wg.Wait()
	booked := func(g *weir.Gate) int64 { return g.Totals().Calls() + g.Totals().Ignored }
	require.Eventually(t, func() bool {
		return places.InFlight() == 0 && booked(far) == h.calls.Load() && booked(near) == sent.Load()
	}, time.Minute, time.Millisecond, "each call has given its place back, and has a result on both sides")
	got := far.Totals()
	require.Zero(t, near.Totals().Refused+got.Refused)
	require.NotZero(t, got.Successes)
	require.NotZero(t, got.Failures)
	require.Zero(t, metric(near.Breaker(), "weir.breaker.late_results"))
}

// metric returns the value of b's instrument with that name.
func metric(b *breaker.Breaker, name string) (n int64) {
	for s, v := range b.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}
