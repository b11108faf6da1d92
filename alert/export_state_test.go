package alert

import "github.com/weir-go/weir/internal/journal"

// StateFormat is the format of the journal of a state file.
const StateFormat = stateFormat

// Kill releases the state file as the end of the process would.
func (m *Monitor) Kill() {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	if m.state.journal != nil {
		_ = m.state.journal.Close()
	}
	m.state.journal, m.state.path = nil, ""
}

// RestoreState restores the content of a journal, and returns how many of its records are not as a
// monitor writes them.
func RestoreState(j *journal.Journal) (invalid int) {
	s, invalid := decodeState(j)
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
	return invalid
}
