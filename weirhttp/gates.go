package weirhttp

import (
	"errors"
	"net/http"

	"github.com/weir-go/weir"
)

// A gate function returns the gate that a request goes through. If it returns nil, the request is sent
// or served without a gate. It is called for each request, from any number of goroutines, and must not
// block. Per and One return gate functions, and any function of that type is one.

// Per returns a gate function that uses one gate per key, such as [ByHost], [ByRoute] or a tenant:
//
//	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
//	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{})}
//
// Export the group for metrics and use it in alert rules. Per panics if group or key is nil.
func Per[K comparable](group *weir.Group[K], key func(*http.Request) K) func(*http.Request) *weir.Gate {
	if group == nil || key == nil {
		panic(errors.New("weirhttp: Per needs a group and a key function"))
	}
	return func(r *http.Request) *weir.Gate { return group.Get(key(r)) }
}

// One returns a gate function that uses one gate for all requests. It panics if gate is nil.
func One(gate *weir.Gate) func(*http.Request) *weir.Gate {
	if gate == nil {
		panic(errors.New("weirhttp: One needs a gate"))
	}
	return func(*http.Request) *weir.Gate { return gate }
}
