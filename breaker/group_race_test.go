//go:build race

package breaker_test

const manyKeys = 100_000 // the race detector takes ten times as long
