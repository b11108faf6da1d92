package pipeline

// Waiting is how many callers are in the queue.
func Waiting(w *Writer) (n int) {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	for c := w.line.first; c != nil; c = c.next {
		n++
	}
	return n
}

// Busy is how many lanes are busy.
func Busy(w *Writer) int {
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	return w.line.busy
}
