// Package ring is the arithmetic under the moving windows: prefix sums by bucket.
//
// A window is kept as totals that only grow, and a ring that remembers what they
// were when each recent bucket began. The sum over any recent span is then one
// subtraction, whatever its length. Time comes as an offset from a moment that
// the owner chose; there is no clock here, and no lock.
package ring

import (
	"math"
	"sync/atomic"
)

// Ring holds a row of totals for each of the recent buckets in which the owner called Advance:
// what they were when the bucket began. A bucket without a row began with the totals of the
// next one that has a row, since nothing was added in between. So a pause of any length costs
// one row, however many buckets it spans.
//
// One goroutine at a time may call Advance; any number may read meanwhile. What was read of
// rows is valid if Newest is the same after the reading as before it: rows are published one at
// a time and there is one row more than any reader may ask for, so the row being written is
// never one that is being read by a reader whose check succeeds.
type Ring struct {
	width  int64
	reach  int64
	cols   int64          // of a row: the number of its bucket, and the totals
	newest atomic.Int64   // the newest bucket
	head   atomic.Int64   // where its row is: the rows before it are those of earlier buckets
	due    atomic.Int64   // the offset at which the newest bucket ends
	cells  []atomic.Int64 // row i starts at i · cols
}

// unmade is the bucket of a row that was not made yet: it lies before any that is asked for.
const unmade = math.MinInt64

// New returns a ring of zero rows whose newest bucket is that of offset 0. A
// bucket is width nanoseconds long; rows can be read as far back as reach
// buckets before the newest one.
func New(width int64, reach, cols int) *Ring {
	rows, each := int64(reach)+2, int64(cols)+1 // the newest, reach before it, and the one being written
	r := &Ring{width: width, reach: int64(reach), cols: each, cells: make([]atomic.Int64, rows*each)}
	for i := int64(1); i < rows; i++ {
		r.cells[i*each].Store(unmade)
	}
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

// Row returns the totals with which the bucket began, which must not be after the newest.
// Buckets between which nothing was added may share their cells.
func (r *Ring) Row(b int64) []atomic.Int64 {
	at := r.find(b)
	return r.cells[at+1 : at+r.cols : at+r.cols]
}

// find returns where the oldest row is whose bucket is b or a later one. Rows that are
// overwritten meanwhile mislead it, but it ends: the reader's check then fails.
func (r *Ring) find(b int64) int64 {
	head := r.head.Load()
	found := r.start(head, 0)
	// The bucket's own row, if each bucket since has one. No row before it is of b.
	low := min(max(r.cells[found].Load()-b, 0), r.reach)
	at := r.start(head, low)
	if low > head && r.cells[at].Load() == unmade { // the first rows of all: theirs is at 0
		low, at = head, 0
	}
	if r.cells[at].Load() >= b {
		return at
	}
	for high := int64(0); low-high > 1; { // rows back from the head: low is before b, and high is not
		middle := high + (low-high)/2
		if at := r.start(head, middle); r.cells[at].Load() >= b {
			high, found = middle, at
		} else {
			low = middle
		}
	}
	return found
}

// start returns where the row starts that is so many rows before the head.
func (r *Ring) start(head, back int64) int64 {
	i := head - back
	if i < 0 {
		i += r.reach + 2
	}
	return i * r.cols
}

// Advance makes b the newest bucket, which begins with the totals given. It does nothing if b
// is not after the newest one.
func (r *Ring) Advance(b int64, totals []int64) {
	if b <= r.newest.Load() {
		return
	}
	head := r.head.Load() + 1
	if head == r.reach+2 {
		head = 0
	}
	at := r.start(head, 0)
	r.cells[at].Store(b)
	for i, v := range totals {
		r.cells[at+1+int64(i)].Store(v)
	}
	r.head.Store(head) // before newest, by which readers check
	r.newest.Store(b)
	r.due.Store(r.End(b)) // last: whoever sees it finds the bucket begun
}
