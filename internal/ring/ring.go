// Package ring has the arithmetic of moving windows: prefix sums by bucket of time.
//
// A window is kept as totals that only grow, and a ring that remembers the totals at the beginning
// of each recent bucket. The sum over any recent span is then one subtraction. Time comes as an
// offset from a moment that the owner chose. There is no clock here, and no lock.
package ring

import (
	"math"
	"sync/atomic"
)

// Ring holds a row of totals for each recent bucket for which the owner called Advance: the totals
// when the bucket began. A bucket without a row began with the totals of the next bucket that has
// one, because nothing was added in between. So a pause of any length costs one row.
//
// One goroutine at a time may call Advance or Restart. Any number may read meanwhile. A reading is
// valid if Newest is the same afterwards as before. Rows are published one at a time, and there is
// one row more than a reader may ask for. So a reader whose check succeeds has not read the row
// that was being written.
//
// A new ring has room for one row. The room doubles as rows come, up to that for all rows.
type Ring struct {
	width   int64
	reach   int32
	columns int32        // of a row: the number of its bucket, and the totals
	newest  atomic.Int64 // the newest bucket
	head    atomic.Int64 // the index of its row: rows before it are of earlier buckets
	end     atomic.Int64 // the offset at which the newest bucket ends

	rows atomic.Pointer[[]atomic.Int64] // row i starts at i · columns; loaded after head
}

// noBucket marks a row that has not been written: it is lower than any real bucket number.
const noBucket = math.MinInt64

// restarting is Newest during a Restart, so that no reading that began before is valid.
const restarting = math.MinInt64 / 2

// New returns a ring of zero rows whose newest bucket is that of offset 0. A bucket is width
// nanoseconds long. Rows can be read as far back as reach buckets before the newest one.
func New(width int64, reach, columns int) *Ring {
	r := &Ring{width: width, reach: int32(reach), columns: int32(columns) + 1}
	rows := make([]atomic.Int64, r.columns)
	r.rows.Store(&rows)
	r.end.Store(r.End(0))
	return r
}

// most is the number of rows of a full ring: the newest, reach before it, and the one being
// written.
func (r *Ring) most() int64 { return int64(r.reach) + 2 }

// Bucket returns the number of the bucket that holds the offset. It is negative before offset 0.
func (r *Ring) Bucket(offset int64) int64 {
	b := offset / r.width
	if offset%r.width < 0 {
		b--
	}
	return b
}

// End returns the offset at which bucket b ends, or the largest offset there is.
func (r *Ring) End(b int64) int64 {
	if b >= math.MaxInt64/r.width {
		return math.MaxInt64
	}
	return (b + 1) * r.width
}

// Start returns the offset at which bucket b begins.
func (r *Ring) Start(b int64) int64 { return b * r.width }

// Began returns the offset at which the newest bucket began.
func (r *Ring) Began() int64 { return r.end.Load() - r.width }

// Width returns the length of a bucket in nanoseconds.
func (r *Ring) Width() int64 { return r.width }

// Newest returns the number of the newest bucket that has a row. Later buckets began with the
// present totals.
func (r *Ring) Newest() int64 { return r.newest.Load() }

// Due reports whether the newest bucket has ended at the offset.
func (r *Ring) Due(offset int64) bool { return offset >= r.end.Load() }

// Row returns the totals with which bucket b began. b must not be after the newest bucket.
func (r *Ring) Row(b int64) []atomic.Int64 {
	head := r.head.Load()
	rows := *r.rows.Load()
	i := r.find(rows, head, b)
	return rows[i+1:][: r.columns-1 : r.columns-1]
}

// find returns the start of the oldest row whose bucket is b or later. If rows are overwritten
// during the search, the search still ends, but its result may be wrong. The check of the reader
// then fails.
func (r *Ring) find(rows []atomic.Int64, head, b int64) int64 {
	found := r.rowStart(head, 0)
	// If each bucket since b has a row, the row of b is this many rows back. No earlier row is of
	// b. It is reach+1 rows back if the head has moved on since the reader read Newest.
	before := min(max(rows[found].Load()-b, 0), int64(r.reach)+1)
	i := r.rowStart(head, before)
	if before > head && (i >= int64(len(rows)) || rows[i].Load() == noBucket) {
		// the ring is not full yet: the first row is at 0
		before, i = head, 0
	}
	if rows[i].Load() >= b {
		return i
	}
	// Binary search in rows back from the head: the row at before is earlier than b, that at after
	// is not.
	for after := int64(0); before-after > 1; {
		middle := after + (before-after)/2
		if i := r.rowStart(head, middle); rows[i].Load() >= b {
			after, found = middle, i
		} else {
			before = middle
		}
	}
	return found
}

// rowStart returns the start of the row that is back rows before the head.
func (r *Ring) rowStart(head, back int64) int64 {
	i := head - back
	if i < 0 {
		i += r.most()
	}
	return i * int64(r.columns)
}

// Advance makes b the newest bucket, which begins with the given totals. It does nothing unless b
// is after the newest one.
func (r *Ring) Advance(b int64, totals []int64) {
	if b <= r.newest.Load() {
		return
	}
	head := r.head.Load() + 1
	if head == r.most() {
		head = 0
	}
	rows, i := *r.rows.Load(), r.rowStart(head, 0)
	if i == int64(len(rows)) {
		rows = r.grow(rows)
	}
	rows[i].Store(b)
	for column, n := range totals {
		rows[i+1+int64(column)].Store(n)
	}
	r.head.Store(head) // stored before newest, which readers check
	r.newest.Store(b)
	r.end.Store(r.End(b)) // stored last, so that a goroutine that sees it finds the bucket ready
}

// grow makes room for twice as many rows. The old rows stay as they are, for readers that have
// them.
func (r *Ring) grow(old []atomic.Int64) []atomic.Int64 {
	rows := make([]atomic.Int64, min(2*int64(len(old)), r.most()*int64(r.columns)))
	for i := range old {
		rows[i].Store(old[i].Load())
	}
	for i := int64(len(old)); i < int64(len(rows)); i += int64(r.columns) {
		rows[i].Store(noBucket)
	}
	r.rows.Store(&rows)
	return rows
}

// Restart makes b the newest bucket, which begins with the given totals, and forgets all other
// rows. b may be before the newest bucket. A reading during a Restart may miss any part of what was
// added.
func (r *Ring) Restart(b int64, totals []int64) {
	r.newest.Store(restarting)
	rows := *r.rows.Load()
	for i := int64(0); i < int64(len(rows)); i += int64(r.columns) {
		rows[i].Store(noBucket)
	}
	for column, n := range totals {
		rows[1+column].Store(n)
	}
	rows[0].Store(b)
	r.head.Store(0)
	r.end.Store(r.End(b))
	r.newest.Store(b)
}
