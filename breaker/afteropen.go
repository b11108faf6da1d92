package breaker

// afterOpen calls f(true) once when the breaker next opens or is forced open, or at once if it is
// already open. If the key of the breaker is forgotten first, it calls f(false) instead, because
// the next breaker of the key does not know f. The goroutine that changes the breaker calls f,
// after the change and outside all locks. f must not block and must not panic. stop cancels the
// call of f, and reports whether f was not called.
//
// A caller that waits for something else before its call, such as a token of a limiter, uses
// afterOpen to stop waiting when the breaker opens.
func (b *Breaker) afterOpen(f func(opened bool)) (stop func() bool) {
	key := &f
	b.changes.watch(key)
	for b.phase.Load().state == evicted {
		if !b.changes.unwatch(key) {
			// f was called: the eviction was undone, and the breaker has opened or was forgotten
			return func() bool { return false }
		}
		b = b.forCalls()
		b.changes.watch(key)
	}
	if s := b.State(); (s == Open || s == ForcedOpen) && b.changes.unwatch(key) {
		f(true)
	}
	return func() bool { return b.changes.unwatch(key) }
}

func (q *changeQueue) watch(f *func(opened bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.watchers == nil {
		q.watchers = map[*func(opened bool)]struct{}{}
	}
	q.watchers[f] = struct{}{}
}

// unwatch removes f, and reports whether it was not called yet.
func (q *changeQueue) unwatch(f *func(opened bool)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, found := q.watchers[f]
	delete(q.watchers, f)
	return found
}

// callWatchers calls all watchers if the breaker has opened since the last call.
func (q *changeQueue) callWatchers() {
	for _, f := range q.takeWatchers() {
		(*f)(true)
	}
}

// abandonWatchers calls the watchers of a breaker whose key was forgotten.
func (q *changeQueue) abandonWatchers() {
	q.mu.Lock()
	all := q.watchers
	q.watchers = nil
	q.mu.Unlock()
	for f := range all {
		(*f)(false)
	}
}

func (q *changeQueue) takeWatchers() (all []*func(opened bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.opened {
		for f := range q.watchers {
			all = append(all, f)
		}
		q.watchers, q.opened = nil, false
	}
	return all
}
