package limiter

import "slices"

// wakeup is a channel that makes the first waiter of another queue try again. It has room for one
// signal, and send never blocks.
type wakeup chan struct{}

func (w wakeup) send() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// setChanged sets the channel w that wakes the first waiter. There is no waiter yet.
func (q *waitQueue) setChanged(w wakeup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed = w
}

// subscribe makes the queue send to w whenever its limiter may have more tokens.
func (q *waitQueue) subscribe(w wakeup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.subscribers = append(q.subscribers, w)
	q.subscriberCount.Add(1)
}

// unsubscribe ends one subscription.
func (q *waitQueue) unsubscribe(w wakeup) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.subscribers, w); i >= 0 {
		q.subscribers = slices.Delete(q.subscribers, i, i+1)
		q.subscriberCount.Add(-1)
	}
}

func (q *waitQueue) notify() {
	for _, w := range q.subscribers {
		w.send()
	}
}
