package latency

import (
	"sync"
	"time"
)

// Sparse is a [Histogram] that takes memory only for the buckets that are not empty, for what
// happens every few seconds. The zero value is empty. All methods may be called from any number of
// goroutines.
type Sparse struct {
	mu     sync.Mutex // guards what follows
	counts []columnCount
	max    time.Duration
}

type columnCount struct {
	column int
	n      int64
}

// Record counts a duration. A negative one counts as 0.
func (s *Sparse) Record(d time.Duration) {
	column, micros := columnOf(int64(d))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.max = max(s.max, d)
	s.add(column, 1)
	if micros > 0 {
		s.add(columnSum, micros)
	}
}

// add adds to a column. The lock is held.
func (s *Sparse) add(column int, n int64) {
	for i := range s.counts {
		if s.counts[i].column == column {
			s.counts[i].n += n
			return
		}
	}
	s.counts = append(s.counts, columnCount{column, n})
}

// Snapshot returns everything that was counted.
func (s *Sparse) Snapshot() Snapshot {
	var d [columns]int64
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.counts {
		d[c.column] = c.n
	}
	return newSnapshot(&d, s.max)
}
