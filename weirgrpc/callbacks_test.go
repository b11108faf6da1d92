package weirgrpc_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// callbacks are called by an object that use uses, and delay themselves if they are slow.
type callbacks struct {
	use    func(context.Context) // calls every method of the object
	inside atomic.Bool
	slow   atomic.Bool
	mu     sync.Mutex
	called map[string]int
}

// by notes a call of a callback by its name.
func (c *callbacks) by(ctx context.Context, name string) {
	c.mu.Lock()
	c.called[name]++
	c.mu.Unlock()
	if c.slow.Load() {
		time.Sleep(time.Hour)
		return
	}
	if !c.inside.Swap(true) {
		c.use(ctx)
		c.inside.Store(false)
	}
}

func (c *callbacks) key(ctx context.Context, _ weirgrpc.Call) string {
	c.by(ctx, "key")
	return "key"
}

func (c *callbacks) classify(error) breaker.Outcome {
	c.by(context.Background(), "Classify")
	return breaker.Success
}

func (c *callbacks) onRefusal(ctx context.Context, _ *weirgrpc.RefusedError) { c.by(ctx, "OnRefusal") }

func (c *callbacks) Take(ctx context.Context, _ int) (limiter.Result, error) {
	c.by(ctx, "Remote")
	return limiter.Result{OK: true}, nil
}

// gate returns a gate function that allows two calls.
func (c *callbacks) gate() gateFunc {
	gate := weir.New("gate", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2})
	return func(ctx context.Context, _ weirgrpc.Call) *weir.Gate {
		c.by(ctx, "gate")
		return gate
	}
}

// fakeStream is a stream that receives one message.
type fakeStream struct {
	grpc.ClientStream
	grpc.ServerStream
	ctx context.Context
}

func (f fakeStream) Context() context.Context { return f.ctx }
func (fakeStream) RecvMsg(any) error          { return nil }
func (fakeStream) SendMsg(any) error          { return nil }

func newServerCallbacks(*testing.T) *callbacks {
	c := &callbacks{called: map[string]int{}}
	flight := inflight.New(inflight.Config{Limit: 100, Queue: inflight.Queue{Target: time.Second}})
	s := weirgrpc.NewServer(weirgrpc.ServerConfig{Classify: c.classify, OnRefusal: c.onRefusal},
		weirgrpc.Shed(flight, func(ctx context.Context, _ weirgrpc.Call) (caller inflight.Caller) { c.by(ctx, "caller"); return }),
		weirgrpc.LimitBy(limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(100), MaxKeys: 10}), c.key),
		weirgrpc.LimitRemote("remote", func(string) limiter.Remote { return c }, c.key),
		weirgrpc.Guard(c.gate()))
	c.use = func(ctx context.Context) {
		for range 2 {
			_, _ = s.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: get}, func(ctx context.Context, _ any) (any, error) {
				c.by(ctx, "handler")
				return "", nil
			})
			_ = s.Stream(nil, fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, stream grpc.ServerStream) error {
				c.by(ctx, "handler")
				return stream.SendMsg(nil)
			})
		}
	}
	return c
}

func newClientCallbacks(t *testing.T) *callbacks {
	c := &callbacks{called: map[string]int{}}
	cc := connect(t, inMemory(), nil)
	client := weirgrpc.NewClient(c.gate(), weirgrpc.ClientConfig{Classify: c.classify, OnRefusal: c.onRefusal})
	c.use = func(ctx context.Context) {
		for range 2 {
			_ = client.Unary(ctx, get, nil, nil, cc, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				c.by(ctx, "invoker")
				return nil
			})
			s, err := client.Stream(ctx, &grpc.StreamDesc{}, cc, watch, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				c.by(ctx, "streamer")
				return fakeStream{ctx: ctx}, nil
			})
			if err == nil {
				_ = s.RecvMsg(nil)
			}
		}
	}
	return c
}

var callbacksOf = map[string]func(*testing.T) *callbacks{"server": newServerCallbacks, "client": newClientCallbacks}

// A lock that is held during a callback would block it for ever.
func TestCallbacksMayUseTheObjectThatCallsThem(t *testing.T) {
	for name, want := range map[string][]string{
		"server": {"caller", "key", "Remote", "gate", "handler", "Classify", "OnRefusal"},
		"client": {"gate", "invoker", "streamer", "Classify", "OnRefusal"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := callbacksOf[name](t)
				c.use(t.Context())
				for _, callback := range want {
					require.Positive(t, c.called[callback], callback)
				}
			})
		})
	}
}

// While a callback takes an hour, calls whose callbacks are quick end at once.
func TestASlowCallbackDelaysNoOtherCall(t *testing.T) {
	for name, newCallbacks := range callbacksOf {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCallbacks(t)
				c.slow.Store(true)
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() { c.use(t.Context()) })
					synctest.Wait()
				}
				for range 20 { // the slow callbacks come one after the other
					began := time.Now()
					c.slow.Store(false)
					c.use(t.Context())
					require.Equal(t, began, time.Now())
					c.slow.Store(true)
					time.Sleep(time.Hour)
					synctest.Wait()
				}
				all.Wait()
			})
		})
	}
}

// A new bubble begins in the year 2000, before the last record.
func TestRefusalsAreLoggedWhenTheClockGoesBack(t *testing.T) {
	var out bytes.Buffer
	log := weirgrpc.LogRefusedCalls(slog.New(slog.NewTextHandler(&out, nil)))
	refuse := func() { log(t.Context(), &weirgrpc.RefusedError{Method: get, Err: breaker.ErrOpen}) }
	for range 3 {
		synctest.Test(t, func(*testing.T) {
			for range 12 {
				refuse()
				time.Sleep(time.Second)
			}
		})
		refuse()
	}
	require.GreaterOrEqual(t, bytes.Count(out.Bytes(), []byte("\n")), 3*12+1)
}
