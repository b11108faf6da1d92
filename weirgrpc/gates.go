package weirgrpc

import (
	"context"
	"errors"

	"github.com/weir-go/weir"
)

// Per returns a gate function with one gate per key. The key can be that of [ByMethod] or
// [ByService], a tenant, or any other comparable value. Per panics if group or key is nil.
func Per[K comparable](group *weir.Group[K], key func(context.Context, Call) K) func(context.Context, Call) *weir.Gate {
	if group == nil || key == nil {
		panic(errors.New("weirgrpc: Per needs a group and a key function"))
	}
	return func(ctx context.Context, call Call) *weir.Gate { return group.Get(key(ctx, call)) }
}

// ForAll returns a gate function with one gate for all calls. It panics if gate is nil.
func ForAll(gate *weir.Gate) func(context.Context, Call) *weir.Gate {
	if gate == nil {
		panic(errors.New("weirgrpc: ForAll needs a gate"))
	}
	return func(context.Context, Call) *weir.Gate { return gate }
}
