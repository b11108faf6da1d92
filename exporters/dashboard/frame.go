package dashboard

import "time"

// frame is what one sample brought, ready to be sent. It does not change.
type frame struct {
	seq   uint64
	delta []byte
}

// shown is what the last frame said, for the next to say only what is new.
type shown struct {
	at     time.Time
	rows   []row
	alerts []alertRow
	sinks  []sinkRow
	faults faults
}

// frame makes the frame that follows the last one.
func (b *board) frame(at time.Time) *frame {
	next := shown{at: at, faults: b.troubles()}
	for _, c := range []class{calls, others} {
		for _, l := range b.of(c) {
			next.rows = append(next.rows, l.row())
		}
	}
	for _, l := range b.of(alerts) {
		next.alerts = append(next.alerts, l.alertRow())
	}
	for _, l := range b.of(sinks) {
		next.sinks = append(next.sinks, l.sinkRow())
	}

	d := delta{Seq: b.seq, At: at.UnixMilli(), Faults: next.faults}
	d.Rows, d.Gone = differ(b.shown.rows, next.rows, d.Gone)
	d.Alerts, d.Gone = differ(b.shown.alerts, next.alerts, d.Gone)
	d.Sinks, d.Gone = differ(b.shown.sinks, next.sinks, d.Gone)
	for _, e := range b.changes {
		if e.seq == b.seq {
			d.Changes = append(d.Changes, e.row())
		}
	}
	b.shown = next
	return &frame{seq: b.seq, delta: encode(d)}
}

// differ lists what is new or has changed, and adds to gone what is no more.
func differ[T interface {
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

// snapshot returns all that the last frame amounts to.
func (b *board) snapshot() []byte {
	s := snapshot{
		Title: b.config.Title, Seq: b.seq, At: b.shown.at.UnixMilli(), Interval: b.config.Interval.Milliseconds(),
		Rows: list(b.shown.rows), Alerts: list(b.shown.alerts), Sinks: list(b.shown.sinks),
		Changes: []changeRow{}, Faults: b.shown.faults, Trails: map[string][]pulses{},
	}
	for _, e := range b.changes {
		s.Changes = append(s.Changes, e.row())
	}
	for _, l := range b.of(calls) {
		if trail := l.trail(); trail != nil {
			s.Trails[l.id] = trail
		}
	}
	return encode(s)
}

// list makes an empty list of nil, which JSON tells apart.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (b *board) troubles() (f faults) {
	for _, one := range b.faults.figures {
		if len(one.series.Values) == 0 {
			f.Panics += one.shown
		} else {
			f.Skipped += one.shown
		}
	}
	return f
}
