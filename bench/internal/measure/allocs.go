package measure

import "runtime"

// Allocs is how many objects a piece of work allocates, rounded down like testing.AllocsPerRun: what others allocate
// meanwhile is spread over n pieces.
func Allocs(loop Loop, n int) int {
	loop(n) // what is set up at first is no cost of the work
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	loop(n)
	runtime.ReadMemStats(&after)
	return int((after.Mallocs - before.Mallocs) / uint64(n))
}
