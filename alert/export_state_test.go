package alert

// Kill releases the state file as the end of the process would.
func (m *Monitor) Kill() {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	if m.state.lock != nil {
		_ = m.state.lock.Close()
	}
	m.state.lock, m.state.path = nil, ""
}

// ReadStateFile reads and restores the content of a state file.
func ReadStateFile(content []byte) (again []byte, err error) {
	s, err := decodeState(content)
	if err != nil {
		return nil, err
	}
	found := map[string]*tracker{}
	for _, t := range s.trackers(s.At) {
		found[t.id] = t
	}
	for _, entries := range s.Notifiers {
		q := newQueue(0)
		r := queueRestorer{trackers: found, now: s.At}
		q.restore(r.entries(entries))
		q.update(nil, s.At)
		q.nextBatch(maxBatch, s.At)
	}
	return s.encode()
}
