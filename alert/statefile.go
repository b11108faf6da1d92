package alert

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/journal"
)

// stateFormat is the format of the journal. A file with another format counts as a foreign file.
const stateFormat = "weir-alert-state 2"

// The keys of the journal. An entry has the key "entry ID NAME", with the ID of its alert and the
// name of its notifier. A notifier has a record of its own, because without entries its receiver
// has heard of no alert, which is not known of a notifier without a record.
const (
	keyAt       = "at" // of an evaluation, while Rule.For or Rule.KeepFiring is under way
	keyRule     = "rule "
	keyAlert    = "alert "
	keyNotifier = "notifier "
	keyEntry    = "entry "
)

func entryKey(id, notifier string) string { return keyEntry + id + " " + notifier }

// savedState is the content of a state file.
type savedState struct {
	At        time.Time
	Rules     map[string]savedRule
	Alerts    []savedAlert
	Notifiers map[string][]savedEntry
}

// savedRule holds the saved values that all alerts of a rule share.
type savedRule struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Threshold   float64           `json:"threshold"`
	Below       bool              `json:"below,omitempty"`
}

// savedAlert is a tracker.
type savedAlert struct {
	Labels     map[string]string `json:"labels"`
	Phase      phase             `json:"phase"`
	Bad        bool              `json:"bad,omitempty"`
	Silenced   bool              `json:"silenced,omitempty"` // by a silence of the monitor
	ActiveAt   time.Time         `json:"active_at,omitzero"`
	FiredAt    time.Time         `json:"fired_at,omitzero"`
	ClearedAt  time.Time         `json:"cleared_at,omitzero"`
	ResolvedAt time.Time         `json:"resolved_at,omitzero"`
	ValueName  string            `json:"value_name,omitempty"`
	Value      float64           `json:"value"`
	Calls      int64             `json:"calls,omitempty"`
	BadCalls   int64             `json:"bad_calls,omitempty"`
}

// savedEntry is an entry of the queue of a notifier.
type savedEntry struct {
	ID         string `json:"-"`
	State      State  `json:"state"`
	ToldFiring bool   `json:"told_firing,omitempty"`
	Notified   bool   `json:"notified,omitempty"`
	Held       bool   `json:"held,omitempty"`
	Due        *Alert `json:"due,omitempty"` // undelivered or in flight
}

// decodeState returns the content of a journal, and how many records are not as a monitor writes
// them. Those are skipped.
func decodeState(j *journal.Journal) (s *savedState, invalid int) {
	s = &savedState{Rules: map[string]savedRule{}, Notifiers: map[string][]savedEntry{}}
	for key, value := range j.All {
		if s.decode(key, value) != nil {
			invalid++
		}
	}
	return s, invalid
}

var errNotState = errors.New("not a record of the state")

func (s *savedState) decode(key string, value json.RawMessage) error {
	kind, name, _ := strings.Cut(key, " ")
	switch kind + " " {
	case keyAt + " ":
		return json.Unmarshal(value, &s.At)
	case keyRule:
		var r savedRule
		err := json.Unmarshal(value, &r)
		s.Rules[name] = r
		return err
	case keyAlert:
		return s.decodeAlert(name, value)
	case keyNotifier:
		entries := s.Notifiers[name]
		s.Notifiers[name] = entries
		return nil
	case keyEntry:
		id, notifier, _ := strings.Cut(name, " ")
		return s.decodeEntry(id, notifier, value)
	}
	return errNotState
}

func (s *savedState) decodeAlert(id string, value json.RawMessage) error {
	var a savedAlert
	if err := json.Unmarshal(value, &a); err != nil {
		return err
	}
	if a.Phase >= phases || a.Labels[labelRule] == "" || fingerprint(a.Labels) != id {
		return errNotState
	}
	s.Alerts = append(s.Alerts, a)
	return nil
}

func (s *savedState) decodeEntry(id, notifier string, value json.RawMessage) error {
	e := savedEntry{ID: id}
	if err := json.Unmarshal(value, &e); err != nil {
		return err
	}
	if e.State != Firing && e.State != Resolved || e.Due != nil && (e.Due.ID != id || e.Due.State != e.State) {
		return errNotState
	}
	s.Notifiers[notifier] = append(s.Notifiers[notifier], e)
	return nil
}

// maxDown is how long a process may be down until its pending alerts start again, as in Prometheus.
const maxDown = time.Hour

// restoreState continues with the alerts of the state file, at the first evaluation that can read
// it. Alerts of removed rules become retired, and so resolve.
func (m *Monitor) restoreState(c *setup) {
	saved := m.state.open(c.config.Logger)
	if saved == nil {
		return
	}
	trackers := saved.trackers(m.now)
	found := map[string]*tracker{}
	for _, t := range trackers {
		found[t.id] = t
	}
	trackers = slices.DeleteFunc(trackers, func(t *tracker) bool { return !t.exists() })
	for _, e := range c.evaluators {
		for _, t := range e.trackers { // there are some if the file could not be read at first
			if old := found[t.id]; old != nil && t.phase == pending && old.phase == firing {
				t.progress = progress{}
			}
		}
		trackers = e.restoreRetired(trackers)
	}
	for _, t := range trackers {
		if t.phase == firing || !t.resolvedAt.IsZero() {
			m.retired = append(m.retired, t)
		}
	}
	for _, d := range c.deliverers {
		if entries, known := saved.Notifiers[d.name]; known {
			d.restore(entries, found, m.now)
		}
	}
}

// trackers returns the alerts. The time since the latest evaluation before the restart does not
// count for Rule.For and Rule.KeepFiring, because no evaluation saw whether the condition held. It
// is negative if the clock went back. No time of an alert is later than now.
func (s *savedState) trackers(now time.Time) (all []*tracker) {
	down := now.Sub(s.At)
	for _, a := range s.Alerts {
		saved := s.Rules[a.Labels[labelRule]]
		t := &tracker{
			rule: &Rule{
				Name: a.Labels[labelRule], Annotations: saved.Annotations,
				When: Condition{set: true, below: saved.Below, threshold: saved.Threshold},
			},
			labels: a.Labels, id: fingerprint(a.Labels), valueName: a.ValueName, reported: true, silenced: a.Silenced,
			latest: measurement{Value: a.Value, Calls: a.Calls, Bad: a.BadCalls, OK: true},
			progress: progress{
				phase: a.Phase, bad: a.Bad, activeAt: a.ActiveAt, firedAt: a.FiredAt,
				clearedAt: a.ClearedAt, resolvedAt: a.ResolvedAt,
			},
		}
		switch {
		case t.phase == pending && down > maxDown:
			t.progress = progress{} // a receiver may have heard of the alert before
		case t.phase == pending:
			t.activeAt = t.activeAt.Add(down)
		case t.phase == firing && !t.clearedAt.IsZero():
			t.clearedAt = t.clearedAt.Add(down)
		}
		for _, at := range []*time.Time{&t.activeAt, &t.firedAt, &t.clearedAt, &t.resolvedAt} {
			*at = notAfter(*at, now)
		}
		all = append(all, t)
	}
	return all
}

// queueRestorer makes the entries of a queue from those of a state file.
type queueRestorer struct {
	trackers    map[string]*tracker // by the ID of the alert
	ownSilences bool
	now         time.Time
}

// entries returns the entries of a queue. A state is due unless it is known that the notifier got
// it. A due state may have been in flight when the process ended, so the notifier may have got it
// nevertheless. A state that a silence held back was not in flight.
func (r *queueRestorer) entries(saved []savedEntry) map[string]*entry {
	entries := map[string]*entry{}
	for _, s := range saved {
		if e := r.restoreEntry(&s); e != nil {
			entries[s.ID] = e
		}
	}
	for id, t := range r.trackers {
		if t.phase == firing && entries[id] == nil {
			held := r.wasHeld(t)
			entries[id] = &entry{
				alert: t.alert(r.now), restoredDue: !held, restoredHeld: held, reported: true, changedAt: r.now,
			}
		}
	}
	for _, e := range entries {
		if e.restoredDue {
			e.notified, e.toldFiring = true, true
		}
	}
	return entries
}

// wasHeld reports whether the latest evaluation did not queue the alert, because it was silenced.
func (r *queueRestorer) wasHeld(t *tracker) bool {
	return t.phase == firing && t.silenced && !r.ownSilences
}

// restoreEntry returns an entry, or nil if nothing is due and the alert no longer exists.
func (r *queueRestorer) restoreEntry(s *savedEntry) *entry {
	e := &entry{toldFiring: s.ToldFiring, notified: s.Notified, reported: true, changedAt: r.now}
	t := r.trackers[s.ID]
	switch {
	case s.Due != nil:
		e.alert, e.restoredDue = *s.Due, true
	case t != nil:
		e.alert = t.alert(r.now)
	default:
		return nil
	}
	if s.State == Firing && (t == nil || t.phase == pending || !t.exists()) {
		return r.ended(e)
	}
	held := s.Held
	if t != nil && t.phase != pending {
		isNew := t.state() != s.State || s.Held && t.phase == firing // or its silence has ended
		held = held && t.phase != firing || isNew && r.wasHeld(t)
		if isNew {
			e.alert, e.restoredDue = t.alert(r.now), e.restoredDue || !held
		}
	}
	e.alert.State = s.State
	if e.restoredDue && t != nil && t.phase != pending {
		e.alert.State = t.state()
	}
	e.restoredHeld = held && !e.restoredDue
	return e
}

// ended makes an entry whose alert fires resolve, or returns nil if the receiver cannot have heard
// of it. The alert itself no longer fires: the file has a newer record of the alert than of the
// entry, as after a loss of power, or the newest record of the alert is damaged.
func (r *queueRestorer) ended(e *entry) *entry {
	if !e.restoredDue && !e.toldFiring {
		return nil
	}
	a := &e.alert
	a.State, a.StartsAt, a.EndsAt = Resolved, notAfter(a.StartsAt, r.now), r.now.Round(0)
	if a.StartsAt.IsZero() { // unknown
		a.StartsAt = a.EndsAt
	}
	e.restoredDue = true
	return e
}

// restore makes the next update begin with entries of a state file. It does not queue them at once,
// because an alert may have resolved since.
func (d *deliverer) restore(saved []savedEntry, trackers map[string]*tracker, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := queueRestorer{trackers, d.queue.ownSilences, now}
	d.restored = r.entries(saved)
}

// restore adds entries, except for alerts that the queue already has.
func (q *queue) restore(entries map[string]*entry) {
	for id, e := range entries {
		if q.entries[id] != nil {
			continue
		}
		q.entries[id] = e
		switch {
		case e.restoredDue:
			q.appendTo(q.due, e)
		case e.restoredHeld:
			q.appendTo(q.held, e)
		}
	}
}

// savedEntries returns the entries of the queue for the state file.
func (d *deliverer) savedEntries() (saved []savedEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.queue.entries {
		e, _ := d.savedEntryOf(id)
		saved = append(saved, e)
	}
	for id := range d.restored {
		if d.queue.entries[id] == nil {
			e, _ := d.savedEntryOf(id)
			saved = append(saved, e)
		}
	}
	return saved
}

// savedEntry returns the entry of an alert for the state file, and whether there is one.
func (d *deliverer) savedEntry(id string) (savedEntry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.savedEntryOf(id)
}

// savedEntryOf is called with the lock held.
func (d *deliverer) savedEntryOf(id string) (savedEntry, bool) {
	if e := d.queue.entries[id]; e != nil {
		due := e.inFlight || e.list == d.queue.due || e.list == d.queue.refused
		return e.saved(id, due, e.list == d.queue.held && !due), true
	}
	if e := d.restored[id]; e != nil {
		return e.saved(id, e.restoredDue, e.restoredHeld), true
	}
	return savedEntry{}, false
}

func (e *entry) saved(id string, due, held bool) savedEntry {
	s := savedEntry{
		ID: id, State: e.alert.State, ToldFiring: e.toldFiring, Notified: e.notified, Held: held,
	}
	if due {
		a := e.alert
		s.Due = &a
	}
	return s
}
