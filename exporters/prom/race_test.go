//go:build race

package prom_test

// raceAllocs is how many more allocations the race detector causes per scrape.
const raceAllocs = 2
