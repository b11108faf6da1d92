// Package interop tests weirhttp together with other libraries: otelhttp inside and outside of it,
// and routers. It also checks that load leaves no connections and goroutines behind.
package interop
