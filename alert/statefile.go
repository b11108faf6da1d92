package alert

import (
	"encoding/json"
	"errors"
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
