package weirgrpc

import (
	"context"
	"errors"

	"github.com/weir-go/weir"
)

// A gate function returns the gate that a call goes through. If it returns nil, the call is made or
// served without a gate. It is called for each call, from any number of goroutines, and must not
// block. Per and One return gate functions, and any function of that type is one.

// Per returns a gate function that uses one gate per key, such as [ByMethod], [ByService] or a
// tenant:
//
//	methods := weir.NewGroup[string]("stock", weir.GroupConfig{})
//	stock := weirgrpc.NewClient(weirgrpc.Per(methods, weirgrpc.ByMethod), weirgrpc.ClientConfig{})
//
// Export the group for metrics and use it in alert rules. Per panics if group or key is nil.
func Per[K comparable](group *weir.Group[K], key func(context.Context, Call) K) func(context.Context, Call) *weir.Gate {
	if group == nil || key == nil {
		panic(errors.New("weirgrpc: Per needs a group and a key function"))
	}
	return func(ctx context.Context, call Call) *weir.Gate { return group.Get(key(ctx, call)) }
}

// One returns a gate function that uses one gate for all calls. It panics if gate is nil.
func One(gate *weir.Gate) func(context.Context, Call) *weir.Gate {
	if gate == nil {
		panic(errors.New("weirgrpc: One needs a gate"))
	}
	return func(context.Context, Call) *weir.Gate { return gate }
}
