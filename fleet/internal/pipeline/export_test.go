package pipeline

// Slot is slot.
func Slot(key string) int { return slot(key) }

// Waiting is how many callers are in the queues.
func Waiting(w *Writer) (n int) {
	for i := range w.lines {
		l := &w.lines[i]
		l.mu.Lock()
		for c := l.first; c != nil; c = c.next {
			n++
		}
		l.mu.Unlock()
	}
	return n
}

// Busy is how many lanes are busy.
func Busy(w *Writer) (n int) {
	for i := range w.lines {
		l := &w.lines[i]
		l.mu.Lock()
		n += l.busy
		l.mu.Unlock()
	}
	return n
}
