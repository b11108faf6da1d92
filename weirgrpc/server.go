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

// ServerConfig says how a [Server] judges calls. The zero value is sensible.
type ServerConfig struct {
	// Classify says what the error of a handler means; nil is a call that succeeded. It is
	// not asked about errors of calls whose client has gone, which are ignored. It takes
	// the place of breaker.Config.Classify, which is not asked. Default DefaultClassify of this
	// package.
	Classify func(err error) breaker.Outcome
	// OnRefusal is told of each call that was refused, before its client is. Default none.
	OnRefusal func(ctx context.Context, e *RefusedError)
}

// Server lets calls in to the handlers of a gRPC server. Its methods are interceptors:
// they may be called from any number of goroutines.
type Server struct {
	rules     []Rule
	classify  func(error) breaker.Outcome
	onRefusal func(context.Context, *RefusedError)
}

// NewServer returns a server whose calls have to pass all rules, in their order. What a
// call has taken of the rules before the one that refuses it is given back. It panics if
// a rule is the zero value.
func NewServer(c ServerConfig, rules ...Rule) *Server {
	if slices.ContainsFunc(rules, func(r Rule) bool { return r.admit == nil }) {
		panic(errors.New("weirgrpc: a Rule is the zero value, must be made by Limit, LimitBy, LimitRemote, Shed or Guard"))
	}
	return &Server{rules: slices.Clone(rules), classify: orClassify(c.Classify), onRefusal: c.OnRefusal}
}

var (
	_ grpc.UnaryServerInterceptor  = (*Server)(nil).Unary
	_ grpc.StreamServerInterceptor = (*Server)(nil).Stream
)

// Unary is a grpc.UnaryServerInterceptor. It returns what the handler returns, or a
// [*RefusedError] if that was not called.
//
// A panic of the handler counts as a failure and goes on up untouched.
func (s *Server) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	v := &visit{server: s, ctx: ctx}
	if err := v.enter(Call{Method: info.FullMethod}); err != nil {
		return nil, err
	}
	defer v.leave()
	reply, err := handler(ctx, req)
	v.judge(err, gaveUp(ctx, err))
	return reply, err
}

// Stream is a grpc.StreamServerInterceptor. It returns what the handler returns, or a
// [*RefusedError] if that was not called.
//
// A stream is judged once: when its first message has been sent, or by the error of its
// handler where that comes first. What becomes of it later is not judged. What bounds the
// calls in flight counts it until its handler is over. A panic before it is judged counts
// as a failure; any goes on up untouched.
func (s *Server) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	v := &visit{server: s, ctx: stream.Context()}
	if err := v.enter(Call{Method: info.FullMethod}); err != nil {
		return err
	}
	defer v.leave()
	err := handler(srv, &serverStream{ServerStream: stream, visit: v})
	v.judge(err, gaveUp(v.ctx, err))
	return err
}

// serverStream is a stream that is judged.
type serverStream struct {
	grpc.ServerStream
	visit *visit
}

func (s *serverStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	switch code(err) {
	case codes.OK, codes.Internal, codes.ResourceExhausted:
		// A message that cannot be encoded or is too long ends the stream, and looks from then on as if its client had gone.
		s.visit.judge(err, false)
	default: // the client is not there: the handler has the last word
	}
	return err
}

// visit is one call that is served.
type visit struct {
	server *Server
	ctx    context.Context
	held   []pass // of the rules, in their order
	judged atomic.Bool
}

// enter asks all rules, and returns what the client gets if one refuses.
func (v *visit) enter(call Call) error {
	in := false
	defer func() {
		if !in { // refused, or a rule's own function panicked
			v.turnBack()
		}
	}()
	for _, rule := range v.server.rules {
		p, err := rule.admit(v.ctx, call)
		if err != nil {
			err = refuse(v.ctx, call, err, v.server.onRefusal)
			pushBack(v.ctx, err)
			return err
		}
		if p != nil {
			v.held = append(v.held, p)
		}
	}
	in = true
	return nil
}

// pushBack sends the wait to clients whose calls gRPC itself retries, because gRPC ignores RetryInfo.
// SetTrailer fails only without a server's stream in ctx, and then there is no client.
func pushBack(ctx context.Context, err error) {
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return
	}
	if ms, ok := e.pushback(); ok {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", strconv.FormatInt(ms, 10)))
	}
}

func (v *visit) turnBack() {
	for _, p := range slices.Backward(v.held) {
		p.undo()
	}
}

// judge says once what the call has come to: nothing, where its client gave it up.
func (v *visit) judge(err error, gone bool) {
	if v.judged.Load() || !v.judged.CompareAndSwap(false, true) {
		return
	}
	outcome := breaker.Ignored // until Classify has spoken: it may panic
	defer func() {
		for _, p := range v.held {
			p.record(outcome)
		}
	}()
	if !gone {
		outcome = v.server.classify(err)
	}
}

func (v *visit) leave() {
	for _, p := range slices.Backward(v.held) {
		p.end()
	}
}
