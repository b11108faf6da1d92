package tally

import "sync"

// lastCalls is a window over the last calls instead of a span of time: a ring of the totals after
// each of them. Ignored and refused calls count from the oldest call in the ring on.
type lastCalls struct {
	mu     sync.Mutex // guards what follows
	n      int64      // calls with a verdict so far
	totals totals
	after  []totals // the totals after call k are at k modulo the length
}

// totals holds a pair per counter.
type totals [counterCount]Pair

func newLastCalls(n int) *lastCalls { return &lastCalls{after: make([]totals, n+1)} }

func (l *lastCalls) record(o Outcome, isSlow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o > Failure {
		l.totals[othersCounter].Calls++
		return
	}
	failed := int64(0)
	if o == Failure {
		failed = 1
	}
	l.totals[callsCounter].Calls++
	l.totals[callsCounter].Failures += failed
	if isSlow {
		l.totals[slowCounter].Calls++
		l.totals[slowCounter].Failures += failed
	}
	l.n++
	l.after[l.n%int64(len(l.after))] = l.totals
}

func (l *lastCalls) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals[othersCounter].Failures++
}

func (l *lastCalls) total(counter int) Pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totals[counter]
}

// window returns what a counter has counted in the window, and after start.
func (l *lastCalls) window(counter int, start Pair) Pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := int64(len(l.after)) - 1
	oldest := (l.n - min(l.n, size)) % int64(len(l.after))
	return l.totals[counter].minus(start.max(l.after[oldest][counter]))
}

// restart empties the window.
func (l *lastCalls) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.after[0] = 0, l.totals
}
