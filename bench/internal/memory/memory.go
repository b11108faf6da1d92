// Package memory measures how many bytes things take on the heap.
package memory

import "runtime"

// Grown is how many bytes the heap grows by when build has built what it returns: that, and all that hangs on it.
func Grown(build func() any) float64 {
	before := heap()
	built := build()
	grown := float64(heap()) - float64(before)
	runtime.KeepAlive(built)
	runtime.KeepAlive(build) // and what it has built from
	return grown
}

// heap is what is in use. Two collections: the first may leave what finalizers and pools still hold.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
