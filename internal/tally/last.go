package tally

import "sync"

// last is a window over the last calls instead of the last span of time: a ring of
// what the totals were after each of them. The sums of any reading are those of
// the calls in the ring, and of what was refused or ignored meanwhile.
type last struct {
	mu   sync.Mutex // guards what follows
	seq  int64      // calls with a verdict so far
	now  row
	rows []row // the totals after call k stand at k modulo the length
}

// row has the pair of each word.
type row [words]Pair

func newLast(calls int) *last { return &last{rows: make([]row, calls+1)} }

func (l *last) record(v Verdict, slow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v > Failure {
		l.now[others].Low++
		return
	}
	failed := int64(0)
	if v == Failure {
		failed = 1
	}
	l.now[judged].Low++
	l.now[judged].High += failed
	if slow {
		l.now[slowed].Low++
		l.now[slowed].High += failed
	}
	l.seq++
	l.rows[l.seq%int64(len(l.rows))] = l.now
}

func (l *last) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now[others].High++
}

func (l *last) total(w int) Pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now[w]
}

// since returns what a word has counted in the window, and not before the floor.
func (l *last) since(w int, floor Pair) Pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := int64(len(l.rows)) - 1
	began := floor.max(l.rows[(l.seq-min(l.seq, size))%int64(len(l.rows))][w])
	return l.now[w].minus(began)
}
