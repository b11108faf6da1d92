package pipeline

// Waiting returns how many callers are in the queue.
func Waiting(w *Writer) (n int) {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	for c := w.queue.first; c != nil; c = c.next {
		n++
	}
	return n
}

// Busy returns how many lanes are busy.
func Busy(w *Writer) int {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	return w.queue.busy
}
