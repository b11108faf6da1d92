//go:build race

package sim

// long tests take minutes under the race detector, and have little to show it.
const long = false
