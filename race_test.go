//go:build race

package weir_test

// fewer divides the size of a test that takes minutes with the race detector.
const fewer = 10
