package weirgrpc

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/weir-go/weir/breaker"
)

// ServerConfig configures a [Server]. Every value is valid.
type ServerConfig struct {
	// Classify returns the outcome of a call by the error of its handler, which is nil if the call
	// succeeded. A call whose client cancelled it or disconnected is ignored without calling
	// Classify. This function replaces breaker.Config.Classify, which is not called. Default
	// DefaultClassify.
	Classify func(err error) breaker.Outcome
	// OnRefusal is called for each refused call, before its client gets the error: see
	// [LogRefusedCalls]. Default none.
	OnRefusal func(ctx context.Context, e *RefusedError)
}

// Server limits and guards the calls that a gRPC server serves. Its methods Unary and Stream are
// interceptors. It is safe for concurrent use. The zero value does not work: use NewServer.
type Server struct {
	rules     []Rule
	classify  func(error) breaker.Outcome
	onRefusal func(context.Context, *RefusedError)
}

// NewServer returns a server that serves the calls that all rules admit. The rules are applied in
// their order. If a rule refuses a call, the tokens and slots that the call got from earlier rules
// are given back. NewServer panics if a rule is the zero value.
func NewServer(c ServerConfig, rules ...Rule) *Server {
	if slices.ContainsFunc(rules, func(r Rule) bool { return r.admit == nil }) {
		panic(errors.New("weirgrpc: a Rule is the zero value, must be made by Limit, LimitBy, LimitRemote, Shed or Guard"))
	}
	return &Server{rules: slices.Clone(rules), classify: classifyOrDefault(c.Classify), onRefusal: c.OnRefusal}
}

var (
	_ grpc.UnaryServerInterceptor  = (*Server)(nil).Unary
	_ grpc.StreamServerInterceptor = (*Server)(nil).Stream
)

// Unary is a grpc.UnaryServerInterceptor. It returns the results of the handler, or a
// [*RefusedError] if a rule refuses the call.
//
// If the handler panics, the call counts as a failure and the panic propagates.
func (s *Server) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c := &servedCall{server: s, ctx: ctx}
	if err := c.admit(Call{Method: info.FullMethod}); err != nil {
		return nil, err
	}
	defer c.end()
	reply, err := handler(ctx, req)
	c.record(err, cancelled(ctx, err))
	return reply, err
}

// Stream is a grpc.StreamServerInterceptor. It returns the error of the handler, or a
// [*RefusedError] if a rule refuses the call.
//
// The outcome of a stream is known when its first message has been sent, or when its handler
// returns if that comes first. Later errors do not change it. The stream holds its slot of a Shed
// until the handler returns. If the handler panics before the outcome is known, the call counts as
// a failure. All panics propagate.
func (s *Server) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c := &servedCall{server: s, ctx: stream.Context()}
	if err := c.admit(Call{Method: info.FullMethod}); err != nil {
		return err
	}
	defer c.end()
	err := handler(srv, &serverStream{ServerStream: stream, call: c})
	c.record(err, cancelled(c.ctx, err))
	return err
}

// serverStream is a stream whose outcome is recorded.
type serverStream struct {
	grpc.ServerStream
	call *servedCall
}

func (s *serverStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	switch code(err) {
	case codes.OK, codes.Internal, codes.ResourceExhausted:
		// A message that cannot be encoded or is too long ends the stream. Later errors then look
		// as if the client had disconnected.
		s.call.record(err, false)
	default: // the client has disconnected, so the handler's error decides
	}
	return err
}

// servedCall is a call that rules have admitted or are deciding about.
type servedCall struct {
	server   *Server
	ctx      context.Context
	passes   []pass // of the rules, in their order
	recorded atomic.Bool
}

// admit asks all rules. It returns the error for the client if one refuses the call.
func (c *servedCall) admit(call Call) error {
	admitted := false
	defer func() {
		if !admitted { // refused, or a function of the user panicked
			c.undo()
		}
	}()
	for _, rule := range c.server.rules {
		p, err := rule.admit(c.ctx, call)
		if err != nil {
			err = refuse(c.ctx, call, err, c.server.onRefusal)
			setPushback(c.ctx, err)
			return err
		}
		if p != nil {
			c.passes = append(c.passes, p)
		}
	}
	admitted = true
	return nil
}

// setPushback sends the wait in a trailer, for clients that retry by their service config: these
// retries ignore a RetryInfo. The error of SetTrailer is not used, because SetTrailer fails only if
// ctx has no server stream, and then there is no client.
func setPushback(ctx context.Context, err error) {
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return
	}
	if ms, ok := e.pushback(); ok {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", strconv.FormatInt(ms, 10)))
	}
}

func (c *servedCall) undo() {
	for _, p := range slices.Backward(c.passes) {
		p.undo()
	}
}

// record records the outcome of the call once. If ignore is set, the outcome is Ignored.
func (c *servedCall) record(err error, ignore bool) {
	if c.recorded.Load() || !c.recorded.CompareAndSwap(false, true) {
		return
	}
	outcome := breaker.Ignored // recorded if Classify panics
	defer func() {
		for _, p := range c.passes {
			p.record(outcome)
		}
	}()
	if !ignore {
		outcome = c.server.classify(err)
	}
}

func (c *servedCall) end() {
	for _, p := range slices.Backward(c.passes) {
		p.end()
	}
}
