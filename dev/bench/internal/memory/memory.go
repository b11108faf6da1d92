// Package memory measures how many bytes objects take on the heap.
package memory

import "runtime"

// Grown returns how many bytes the result of build takes on the heap, with everything that it
// refers to.
func Grown(build func() any) float64 {
	before := heapInUse()
	built := build()
	grown := float64(heapInUse()) - float64(before)
	runtime.KeepAlive(built)
	runtime.KeepAlive(build) // its inputs must not be freed between the two readings
	return grown
}

// heapInUse returns the bytes in use. It collects twice, because finalizers and pools can keep
// objects alive through the first collection.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
