package weirgrpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// ClientConfig says how a [Client] judges calls. All values are valid, and the zero value is sensible.
type ClientConfig struct {
	// Classify says what the error of a call means; nil is a call that succeeded. It is
	// not asked about one that its own caller cancelled, which is ignored. It takes the
	// place of breaker.Config.Classify, which is not asked. Begin with DefaultClassify of this
	// package for what it is to leave as it is; that is the default.
	Classify func(err error) breaker.Outcome
	// MaxRetryAfter is the longest wait that a server can ask for with a RetryInfo. It is obeyed
	// if the call failed, and always with the codes Unavailable and ResourceExhausted. The gate
	// refuses calls for that long (weir.Gate.Hold), and a breaker that opens stays open at least
	// as long, up to a MaxRetryAfter of its own. If it is negative, what servers ask for is ignored.
	// Default 1 min.
	MaxRetryAfter time.Duration
	// OnRefusal is told of each call that was refused, before its caller is. Default none.
	OnRefusal func(ctx context.Context, e *RefusedError)
}

// Client guards the calls of a gRPC client. Its methods are interceptors: they may be
// called from any number of goroutines, and one Client may serve several connections.
type Client struct {
	gate          func(context.Context, Call) *weir.Gate
	classify      func(error) breaker.Outcome
	maxRetryAfter time.Duration
	onRefusal     func(context.Context, *RefusedError)
}

// NewClient returns a client whose calls go through the gates. It panics if gate is nil.
func NewClient(gate func(context.Context, Call) *weir.Gate, c ClientConfig) *Client {
	if gate == nil {
		panic(errors.New("weirgrpc: NewClient needs a gate function"))
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = time.Minute
	}
	return &Client{gate: gate, classify: orClassify(c.Classify), maxRetryAfter: c.MaxRetryAfter, onRefusal: c.OnRefusal}
}

var _ grpc.UnaryClientInterceptor = (*Client)(nil).Unary

// Unary is a grpc.UnaryClientInterceptor. It returns the error of the call as it is, or a
// [*RefusedError] if the call was not made; where the context was done before, its error
// as a status. It blocks before the call as long as weir.Config.MaxWait says.
//
// A panic on the way counts as a failure and goes on up untouched.
func (c *Client) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	call := Call{Method: method, Target: cc.Target()}
	gate := c.gate(ctx, call)
	if gate == nil {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	permit, err := gate.Allow(ctx)
	if err != nil {
		return refuse(ctx, call, err, c.onRefusal)
	}
	defer permit.Record(breaker.Failure) // counts only if the invoker does not return
	err = invoker(ctx, method, req, reply, cc, opts...)
	c.book(ctx, gate, &permit, err)
	return err
}

// book books the result of a call, and keeps to the wait that a server asks for.
func (c *Client) book(ctx context.Context, g *weir.Gate, m *breaker.Permit, err error) {
	outcome := breaker.Ignored // until Classify has spoken: it may panic
	defer func() { m.Record(outcome) }()
	if gaveUp(ctx, err) {
		return
	}
	outcome = c.classify(err)
	if wait := c.asked(err, outcome == breaker.Failure); wait > 0 {
		m.SetRetryAfter(wait)
		g.Hold(wait)
	}
}

// asked returns how long the server asks the client to wait, 0 or less if it does not. A refusal by
// another gate of this process is not the server's.
func (c *Client) asked(err error, failed bool) time.Duration {
	if err == nil || errors.Is(err, weir.ErrRefused) {
		return 0
	}
	if code := code(err); !failed && code != codes.Unavailable && code != codes.ResourceExhausted {
		return 0
	}
	return min(retryAfter(err), c.maxRetryAfter)
}
