// Package ring is the arithmetic under the moving windows: prefix sums by bucket.
//
// A window is kept as totals that only grow, and a ring that remembers what they
// were when each recent bucket began. The sum over any recent span is then one
// subtraction, whatever its length. Time comes as an offset from a moment that
// the owner chose; there is no clock here, and no lock.
package ring

import "sync/atomic"

// Ring holds one row of totals for each of the recent buckets.
//
// One goroutine at a time may call Advance; any number may read meanwhile. What
// was read of rows is valid if Newest is the same after the reading as before it:
// rows are published one at a time and there is one row more than any reader
// may ask for, so the row being written is never one that is being read by a
// reader whose check succeeds.
type Ring struct {
	width  int64
	cols   int64
	mask   int64
	newest atomic.Int64
	due    atomic.Int64   // the offset at which the newest bucket ends
	cells  []atomic.Int64 // the row of bucket b starts at (b & mask) · cols
}

// New returns a ring of zero rows whose newest bucket is that of offset 0. A
// bucket is width nanoseconds long; rows can be read as far back as reach
// buckets before the newest one.
func New(width int64, reach, cols int) *Ring {
	size := int64(1)
	for size < int64(reach)+2 { // the newest, reach before it, and the one being written
		size <<= 1
	}
	r := &Ring{width: width, cols: int64(cols), mask: size - 1, cells: make([]atomic.Int64, size*int64(cols))}
	r.due.Store(r.End(0))
	return r
}

// Bucket returns the number of the bucket that holds the offset. Offsets before
// 0 have negative numbers.
func (r *Ring) Bucket(offset int64) int64 {
	b := offset / r.width
	if offset%r.width < 0 {
		b--
	}
	return b
}

// End returns the offset at which bucket b ends, or the largest offset there is.
func (r *Ring) End(b int64) int64 {
	const last = 1<<63 - 1
	if b >= last/r.width {
		return last
	}
	return (b + 1) * r.width
}

// Start returns the offset at which bucket b begins.
func (r *Ring) Start(b int64) int64 { return b * r.width }

// Width returns the length of a bucket in nanoseconds.
func (r *Ring) Width() int64 { return r.width }

// Newest returns the number of the newest bucket that has a row. Buckets after
// it began with the totals as they are now.
func (r *Ring) Newest() int64 { return r.newest.Load() }

// Due reports whether the newest bucket has ended at the offset.
func (r *Ring) Due(offset int64) bool { return offset >= r.due.Load() }

// Row returns the cells of the bucket's row: the totals when it began.
func (r *Ring) Row(b int64) []atomic.Int64 {
	at := (b & r.mask) * r.cols
	return r.cells[at : at+r.cols : at+r.cols]
}

// Advance makes b the newest bucket. Every bucket that begins thereby gets the
// row. It does nothing if b is not after the newest one.
//
// After as many steps as there are rows all of them are equal, so the number may
// jump: an idle gap of any length costs at most one pass over the ring.
func (r *Ring) Advance(b int64, row []int64) {
	newest := r.newest.Load()
	for step := int64(0); newest < b && step <= r.mask; step++ {
		cells := r.Row(newest + 1)
		for i, v := range row {
			cells[i].Store(v)
		}
		newest++
		r.newest.Store(newest)
	}
	if newest < b {
		newest = b
		r.newest.Store(b)
	}
	r.due.Store(r.End(newest)) // last: whoever sees it finds the bucket begun
}
