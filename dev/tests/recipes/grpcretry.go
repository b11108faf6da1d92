package recipes

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirgrpc"
)

//readme:serviceconfig
const retries = `{
	"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE"]
	}}],
	"retryThrottling": {"maxTokens": 20, "tokenRatio": 0.1}
}`

// DialRetrying returns a connection whose gate counts a call with all its attempts once.
func DialRetrying(target string, gate *weir.Gate, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	client := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{})
	return grpc.NewClient(target, append(options,
		grpc.WithDefaultServiceConfig(retries),
		grpc.WithChainUnaryInterceptor(client.Unary),
		grpc.WithChainStreamInterceptor(client.Stream),
	)...)
}

//readme:end

// DialOutside returns a connection whose gate counts each attempt.
func DialOutside(target string, gate *weir.Gate, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	client := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{})
	return grpc.NewClient(target, append(options,
		//readme:outside
		// The first interceptor is the outer one.
		grpc.WithChainUnaryInterceptor(retryTwice, client.Unary),
		//readme:end
	)...)
}

//readme:interceptor

// retryTwice retries while the server is unavailable, or the gate refuses for at most a second.
func retryTwice(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	made, failure := 0, error(nil) // attempts that the gate allowed, and the error of the last one
	for attempt := 0; ; attempt++ {
		err := invoker(weir.WithAttempt(ctx, made), method, req, reply, cc, opts...)
		if _, ok := errors.AsType[*weir.RetryError](err); ok {
			return cmp.Or(failure, err)
		}
		refused, wait := errors.Is(err, weir.ErrRefused), rand.N(100*time.Millisecond<<attempt)
		if refused {
			wait = weir.RetryAfter(err) // at least as long as the server has asked
		} else {
			made, failure = made+1, err
		}
		if !refused && status.Code(err) != codes.Unavailable || attempt == 2 || wait > time.Second {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

//readme:end
