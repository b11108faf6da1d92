//go:build !race

package sim

const long = true
