//go:build !race

package breaker_test

const manyKeys = 1_000_000
