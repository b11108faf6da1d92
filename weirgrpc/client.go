package weirgrpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// ClientConfig configures a [Client]. The zero value is valid.
type ClientConfig struct {
	// Classify returns the outcome of a call by its error, which is nil if the call succeeded. A
	// call that its caller cancelled is ignored without calling Classify. This function replaces
	// breaker.Config.Classify, which is not called. Default DefaultClassify.
	Classify func(err error) breaker.Outcome
	// MaxRetryAfter is the longest wait that a server can ask for with a RetryInfo. A RetryInfo is
	// obeyed if the call failed, and always with the codes Unavailable and ResourceExhausted. The
	// gate then refuses calls for that time and up to a tenth longer (see weir.Gate.Hold). A
	// breaker that opens stays open at least as long, up to its own MaxRetryAfter. breaker.Off
	// ignores waits that servers ask for. Default 1m.
	MaxRetryAfter time.Duration
	// OnRefusal is called for each refused call, before its caller gets the error: see
	// [LogRefusedCalls]. Default none.
	OnRefusal func(ctx context.Context, e *RefusedError)
}

// Validate returns an error that names the invalid field, or nil if there is none.
func (c ClientConfig) Validate() error {
	if c.MaxRetryAfter < breaker.Off {
		return fmt.Errorf("weirgrpc: MaxRetryAfter is %v, must not be negative, or Off", c.MaxRetryAfter)
	}
	return nil
}

// Client guards the calls of gRPC clients. Its methods Unary and Stream are interceptors. A Client
// can be used by several connections and is safe for concurrent use. The zero value does not work:
// use NewClient.
type Client struct {
	gate          func(context.Context, Call) *weir.Gate
	classify      func(error) breaker.Outcome
	maxRetryAfter time.Duration
	onRefusal     func(context.Context, *RefusedError)
}

// NewClient returns a client that makes each call through the gate that the gate function returns:
// see [Per] and [ForAll]. If the function returns nil, the call is made without a gate. NewClient
// panics with the error of c.Validate if c is invalid, and if gate is nil.
func NewClient(gate func(context.Context, Call) *weir.Gate, c ClientConfig) *Client {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if gate == nil {
		panic(errors.New("weirgrpc: NewClient needs a gate function"))
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = time.Minute
	}
	return &Client{gate: gate, classify: classifyOrDefault(c.Classify), maxRetryAfter: c.MaxRetryAfter, onRefusal: c.OnRefusal}
}

var _ grpc.UnaryClientInterceptor = (*Client)(nil).Unary

// Unary is a grpc.UnaryClientInterceptor. It returns the error of the call as it is, or a
// [*RefusedError] if the gate refuses the call. If the context is done before the call is made,
// Unary returns the status of the context's error. It waits for a token for up to
// weir.Config.MaxWait.
//
// If the invoker panics, the call counts as a failure and the panic propagates.
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
	defer permit.Record(ctx, nil, breaker.Failure) // counts only if the invoker does not return
	err = invoker(withAttempt(ctx), method, req, reply, cc, opts...)
	c.record(ctx, gate, &permit, err)
	return err
}

// attemptKey is the metadata in which gRPC counts the attempts before this one: see gRFC A6.
const attemptKey = "grpc-previous-rpc-attempts"

// withAttempt tells the server that the call is a retry or a hedge.
func withAttempt(ctx context.Context) context.Context {
	n := weir.Attempt(ctx)
	if n == 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, attemptKey, strconv.Itoa(n))
}

// record records the outcome of a call, and holds the gate if the server asks for a wait.
func (c *Client) record(ctx context.Context, g *weir.Gate, permit *weir.Permit, err error) {
	outcome := breaker.Ignored // recorded if Classify panics
	defer func() { permit.Record(ctx, err, outcome) }()
	if cancelled(ctx, err) {
		return
	}
	outcome = c.classify(err)
	if wait := c.requestedWait(err, outcome.Failed()); wait > 0 {
		permit.SetRetryAfter(wait)
		g.Hold(wait)
	}
}

// requestedWait returns the wait that the server asks for, or 0 or less if there is none. An error
// of another gate of this process is not from the server.
func (c *Client) requestedWait(err error, failed bool) time.Duration {
	if err == nil || errors.Is(err, weir.ErrRefused) {
		return 0
	}
	if code := code(err); !failed && code != codes.Unavailable && code != codes.ResourceExhausted {
		return 0
	}
	return min(retryAfter(err), c.maxRetryAfter)
}
