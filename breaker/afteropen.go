package breaker

// afterOpen calls f(true) once, when the breaker next opens or is forced open, or at once if it is
// open. It calls f(false) instead if the breaker's key is forgotten first: the next breaker of the key
// does not know f. f is called in the goroutine that changes the breaker, after the change and outside
// all locks. It must not block and must not panic.
//
// A caller that waits for something else before a call, such as a limiter's token, can so stop waiting
// once the breaker is open. stop cancels the call of f, and reports whether it did before f was
// called.
func (b *Breaker) afterOpen(f func(opened bool)) (stop func() bool) {
	key := &f
	for b.changes.watch(key); b.phase.Load().state == evicted; b.changes.watch(key) { // it was evicted meanwhile
		if !b.changes.unwatch(key) { // it was not evicted after all, and has opened, or was forgotten
			return func() bool { return false }
		}
		b = b.live()
	}
	if s := b.State(); (s == Open || s == ForcedOpen) && b.changes.unwatch(key) {
		f(true)
	}
	return func() bool { return b.changes.unwatch(key) }
}

func (q *changes) watch(f *func(opened bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.watchers == nil {
		q.watchers = map[*func(opened bool)]struct{}{}
	}
	q.watchers[f] = struct{}{}
}

// unwatch reports whether f was still to be called.
func (q *changes) unwatch(f *func(opened bool)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, there := q.watchers[f]
	delete(q.watchers, f)
	return there
}

// wake calls those who watch, if the breaker has opened since the last time.
func (q *changes) wake() {
	for _, f := range q.woken() {
		(*f)(true)
	}
}

// abandon calls those who watch a breaker whose key was forgotten.
func (q *changes) abandon() {
	q.mu.Lock()
	all := q.watchers
	q.watchers = nil
	q.mu.Unlock()
	for f := range all {
		(*f)(false)
	}
}

func (q *changes) woken() (all []*func(opened bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.opened {
		for f := range q.watchers {
			all = append(all, f)
		}
		q.watchers = nil
		q.opened = false
	}
	return all
}
