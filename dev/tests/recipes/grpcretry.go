package recipes

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirgrpc"
)

//readme:serviceconfig
const retries = `{
	"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE"]
	}}],
	"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
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
func retryTwice(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var err error
	for range 3 {
		err = invoker(ctx, method, req, reply, cc, opts...)
		if err == nil || errors.Is(err, weir.ErrRefused) {
			return err // a refused attempt would be refused again at once
		}
	}
	return err
}

//readme:end
