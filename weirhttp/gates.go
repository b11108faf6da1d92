package weirhttp

import (
	"errors"
	"net/http"

	"github.com/weir-go/weir"
)

// Per returns a gate function with one gate per key. The key can be that of [ByHost] or [ByRoute],
// a tenant, or any other comparable value. Per panics if group or key is nil.
func Per[K comparable](group *weir.Group[K], key func(*http.Request) K) func(*http.Request) *weir.Gate {
	if group == nil || key == nil {
		panic(errors.New("weirhttp: Per needs a group and a key function"))
	}
	return func(r *http.Request) *weir.Gate { return group.Get(key(r)) }
}

// One returns a gate function with one gate for all requests. It panics if gate is nil.
func One(gate *weir.Gate) func(*http.Request) *weir.Gate {
	if gate == nil {
		panic(errors.New("weirhttp: One needs a gate"))
	}
	return func(*http.Request) *weir.Gate { return gate }
}
