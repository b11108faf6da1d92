package weirgrpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

var _ grpc.StreamClientInterceptor = (*Client)(nil).Stream

// Stream is a grpc.StreamClientInterceptor. It returns a [*RefusedError] if the gate refuses the
// call. If the gate allows the call, the stream and its errors are the same as without the
// interceptor.
//
// The outcome of a stream is that of its first message, or of its end if that comes first. Headers
// alone have no outcome. Later errors do not change the outcome, but a wait that the server asks
// for at the end of a stream is always obeyed. Until the outcome is known, the stream occupies its
// slot in the breaker. A stream that is never read ends when its context is done or its connection
// is closed.
func (c *Client) Stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	call := Call{Method: method, Target: cc.Target()}
	gate := c.gate(ctx, call)
	if gate == nil {
		return streamer(ctx, desc, cc, method, opts...)
	}
	s := &clientStream{client: c, gate: gate, ctx: ctx}
	var err error
	if s.permit, err = gate.Allow(ctx); err != nil {
		return nil, refuse(ctx, call, err, c.onRefusal)
	}
	returned := false
	defer func() {
		if !returned {
			s.permit.Record(ctx, nil, breaker.Failure)
		}
	}()
	// If a stream is never read, only gRPC knows when the stream ends.
	s.ClientStream, err = streamer(withAttempt(ctx), desc, cc, method, append(slices.Clip(opts), grpc.OnFinish(s.received))...)
	returned = true
	if err != nil {
		s.received(err)
		return nil, err
	}
	return s, nil
}

// clientStream is a stream whose outcome is recorded.
type clientStream struct {
	grpc.ClientStream
	client   *Client
	gate     *weir.Gate
	ctx      context.Context // of the caller; that of the stream is always cancelled in the end
	permit   weir.Permit
	recorded atomic.Bool
	failed   atomic.Bool // an error has been seen
}

func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.received(err)
	return err
}

// received records the outcome with the first message or error, and obeys the first error. It may
// be called more than once for the same error.
func (s *clientStream) received(err error) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	first := !s.recorded.Load() && s.recorded.CompareAndSwap(false, true)
	firstError := err != nil && s.failed.CompareAndSwap(false, true)
	switch {
	case first:
		s.client.record(s.ctx, s.gate, &s.permit, err)
	case firstError && !cancelled(s.ctx, err):
		s.gate.Hold(s.client.requestedWait(err, false))
	}
}
