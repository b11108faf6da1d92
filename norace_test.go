//go:build !race

package weir_test

const fewer = 1
