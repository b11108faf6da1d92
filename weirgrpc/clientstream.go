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

// Stream is a grpc.StreamClientInterceptor. It returns a [*RefusedError] if the stream was
// not begun; otherwise streams and their errors are as they are without it.
//
// A stream is judged once: by its first message, or by its end where that comes first.
// What becomes of it later is not judged, and headers alone say nothing. A wait that the
// server asks for when it ends the stream is obeyed at any time. It has its place
// in the breaker until then. A stream that is never read is over, as gRPC has it, when its
// context is done or its connection is closed.
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
			s.permit.Record(breaker.Failure)
		}
	}()
	// The end of a stream that nobody reads is known to gRPC alone.
	s.ClientStream, err = streamer(ctx, desc, cc, method, append(slices.Clip(opts), grpc.OnFinish(s.judge))...)
	returned = true
	if err != nil {
		s.judge(err)
		return nil, err
	}
	return s, nil
}

// clientStream is a stream that is judged.
type clientStream struct {
	grpc.ClientStream
	client *Client
	gate   *weir.Gate
	ctx    context.Context // the caller's: that of the stream is always cancelled in the end
	permit breaker.Permit
	judged atomic.Bool
	ended  atomic.Bool // with an error
}

func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.judge(err)
	return err
}

func (s *clientStream) judge(err error) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	first := !s.judged.Load() && s.judged.CompareAndSwap(false, true)
	last := err != nil && s.ended.CompareAndSwap(false, true)
	switch {
	case first:
		s.client.book(s.ctx, s.gate, &s.permit, err)
	case last && !gaveUp(s.ctx, err):
		s.gate.Hold(s.client.asked(err, false))
	}
}
