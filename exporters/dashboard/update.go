package dashboard

import "time"

// update is the encoded difference between one sample and the previous one. It is immutable.
type update struct {
	seq   uint64
	delta []byte
}

// publishedContent is the content of the last update, for comparison with the next.
type publishedContent struct {
	at        time.Time
	rows      []tableRow
	alerts    []alertRow
	notifiers []notifierRow
	faults    faults
}

// newUpdate returns what changed since the last update.
func (m *model) newUpdate(at time.Time) *update {
	next := publishedContent{at: at, faults: m.countFaults()}
	for _, c := range []class{callsClass, othersClass} {
		for _, entry := range m.entriesOf(c) {
			if entry.kind != configKind {
				next.rows = append(next.rows, entry.tableRow(at))
			}
		}
	}
	for _, entry := range m.entriesOf(alertsClass) {
		next.alerts = append(next.alerts, entry.alertRow(at))
	}
	for _, entry := range m.entriesOf(notifiersClass) {
		next.notifiers = append(next.notifiers, entry.notifierRow())
	}

	d := delta{Seq: m.seq, At: at.UnixMilli(), Faults: next.faults}
	d.Rows, d.Gone = diff(m.published.rows, next.rows, d.Gone)
	d.Alerts, d.Gone = diff(m.published.alerts, next.alerts, d.Gone)
	d.Notifiers, d.Gone = diff(m.published.notifiers, next.notifiers, d.Gone)
	for _, e := range m.changes {
		if e.seq == m.seq {
			d.Changes = append(d.Changes, e.changeRow())
		}
	}
	m.published = next
	return &update{seq: m.seq, delta: encode(d)}
}

// diff returns the rows that are new or changed, and appends the keys of removed rows to gone.
func diff[T interface {
	comparable
	key() string
}](old, now []T, gone []string) (changed []T, _ []string) {
	before := make(map[string]T, len(old))
	for _, r := range old {
		before[r.key()] = r
	}
	for _, r := range now {
		if was, ok := before[r.key()]; !ok || was != r {
			changed = append(changed, r)
		}
		delete(before, r.key())
	}
	for key := range before {
		gone = append(gone, key)
	}
	return changed, gone
}

// snapshot returns the page as of the last update.
func (m *model) snapshot() []byte {
	s := snapshot{
		Title: m.config.Title, Seq: m.seq, At: m.published.at.UnixMilli(), Interval: m.config.Interval.Milliseconds(),
		Rows: nonNil(m.published.rows), Alerts: nonNil(m.published.alerts), Notifiers: nonNil(m.published.notifiers),
		Changes: []changeRow{}, Faults: m.published.faults, Trails: map[string][]callRates{},
	}
	for _, e := range m.changes {
		s.Changes = append(s.Changes, e.changeRow())
	}
	for _, entry := range m.entriesOf(callsClass) {
		if trail := entry.recentCallRates(); trail != nil {
			s.Trails[entry.id] = trail
		}
	}
	return encode(s)
}

// nonNil returns an empty list for nil, which JSON encodes as null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (m *model) countFaults() (f faults) {
	f.Notices = m.notices
	for _, one := range m.faults.metrics {
		if len(one.series.Values) == 0 {
			f.Panics += one.last
		} else {
			f.Skipped += one.last
		}
	}
	return f
}
