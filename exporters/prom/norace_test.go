//go:build !race

package prom_test

const raceAllocs = 0
