package limiter

import "slices"

// bell tells the head of another queue to look again. It has room for one ring, and who rings never waits.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// setBell has the queue listen to another bell. Nobody waits.
func (q *queue) setBell(b bell) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bell = b
}

// watch has a bell rung from now on whenever there may be more to have.
func (q *queue) watch(b bell) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bells = append(q.bells, b)
	q.heard.Add(1)
}

// unwatch ends one watch.
func (q *queue) unwatch(b bell) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.bells, b); i >= 0 {
		q.bells = slices.Delete(q.bells, i, i+1)
		q.heard.Add(-1)
	}
}

func (q *queue) ringBells() {
	for _, b := range q.bells {
		b.ring()
	}
}
