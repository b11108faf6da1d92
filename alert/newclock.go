package alert

import "time"

// restart lets all times begin again at t. Values are sampled as by a new monitor. Alerts stay
// pending or firing, and Rule.For and Rule.KeepFiring begin again.
func (m *Monitor) restart(s *setup, t time.Time) {
	m.now = t
	for _, e := range s.evaluators {
		e.sampling = e.rule.Value.beginSampling(nil)
		for _, one := range e.trackers {
			one.restart(t)
		}
	}
	for _, one := range m.retired {
		one.restart(t)
	}
	for _, d := range s.deliverers {
		d.mu.Lock()
		d.queue.restart(t)
		d.mu.Unlock()
	}
}

// restart moves the times of the alert that lie after t to t.
func (p *progress) restart(t time.Time) {
	for _, at := range []*time.Time{&p.activeAt, &p.firedAt, &p.clearedAt, &p.resolvedAt} {
		*at = notAfter(*at, t)
	}
}

// restart makes refused alerts due, and counts the time until an alert is repeated from t on.
func (q *queue) restart(t time.Time) {
	for _, e := range q.entries {
		e.changedAt = notAfter(e.changedAt, t)
		if !e.refusedAt.IsZero() {
			e.refusedAt = notAfter(e.refusedAt, t)
		}
	}
	q.makeRefusedDue()
}
