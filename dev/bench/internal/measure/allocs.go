package measure

import "runtime"

// Allocs returns the number of objects allocated per operation, rounded down as in
// testing.AllocsPerRun. Allocations of other goroutines are divided by n as well.
func Allocs(loop Loop, n int) int {
	loop(n) // warm up: the first run may allocate more
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	loop(n)
	runtime.ReadMemStats(&after)
	return int((after.Mallocs - before.Mallocs) / uint64(n))
}
