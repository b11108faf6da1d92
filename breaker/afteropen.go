package breaker

// afterOpen calls f once, when the breaker next opens or is forced open, or at once if it is open:
// in the goroutine that opens it, after the state has changed and outside all locks. f must not
// block and must not panic.
//
// A caller that waits for something else before a call, such as a limiter's token, waits in vain
// once the breaker is open. stop cancels the call of f, and reports whether it did before f was
// called.
func (b *Breaker) afterOpen(f func()) (stop func() bool) {
	key := &f
	for b.changes.watch(key); b.phase.Load().state == evicted; b.changes.watch(key) { // it was evicted meanwhile
		if !b.changes.unwatch(key) { // it was not evicted after all, and has opened
			return func() bool { return false }
		}
		b = b.live()
	}
	if s := b.State(); (s == Open || s == ForcedOpen) && b.changes.unwatch(key) {
		f()
	}
	return func() bool { return b.changes.unwatch(key) }
}

func (q *changes) watch(f *func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.watchers == nil {
		q.watchers = map[*func()]struct{}{}
	}
	q.watchers[f] = struct{}{}
}

// unwatch reports whether f was still to be called.
func (q *changes) unwatch(f *func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, there := q.watchers[f]
	delete(q.watchers, f)
	return there
}

// wake calls those who watch, if the breaker has opened since the last time.
func (q *changes) wake() {
	for _, f := range q.woken() {
		(*f)()
	}
}

func (q *changes) woken() (all []*func()) {
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
