package tally

import (
	"sync"
	"sync/atomic"
)

// spread is a count in cells. A word to which several processors add moves from the cache of
// one to that of the next at each add; here a processor takes a cell from the pool and puts
// it back, and so finds its own the next time, where it left it.
type spread struct {
	pool  sync.Pool
	taken atomic.Uint32 // cells that came into the pool
	cells [cells]cell
}

// cells is how many a spread has: more processors than that share them. It is what a reading
// costs, too.
const cells = 16

// cell is far enough from the next one, and from the pool, that no line of a cache holds
// parts of both; two lines, since some processors fetch them in pairs.
type cell struct {
	_ [120]byte
	n atomic.Uint64
}

// add adds 1.
func (s *spread) add() {
	c, _ := s.pool.Get().(*cell)
	if c == nil {
		c = &s.cells[s.taken.Add(1)%cells]
	}
	c.n.Add(1)
	s.pool.Put(c)
}

// sum returns a number that the count had at some moment during the call: it grows by one at
// a time, from no more than the sum to no less. It is 0 for nil.
func (s *spread) sum() (n uint64) {
	if s != nil {
		for i := range s.cells {
			n += s.cells[i].n.Load()
		}
	}
	return n
}

// seldom is how many adds to a word there are for each look at it, so that these cost each of
// them less than a tenth of a nanosecond.
const seldom = 1 << 15

// crowded is changing, but for tests: whether others add just then depends on the machine.
var crowded = changing

// changing reports whether others add to a word so fast that it ought to be spread: four times
// or more while it is read a thousand times, which takes some two microseconds.
func changing(read func() uint64) bool {
	adds, last := 0, read()
	for range 1000 {
		if now := read(); now != last {
			adds++
			last = now
		}
	}
	return adds >= 4
}
