package alert

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"
)

// stateStore keeps the state of the alerts in a file.
//
// Each evaluation writes the file before its alerts are queued, and each delivery writes it before
// the next delivery of the same notifier. So the file has every alert that a receiver may have
// heard of. For each notifier, the file lacks at most one delivery that the receiver got.
type stateStore struct {
	path string

	mu         sync.Mutex
	lock       *os.File // nil until the file has been read
	state      savedState
	deliverers []*deliverer
	empty      bool // the file has no alert
	failing    bool
}

// open locks and reads the file at the first call that succeeds, and returns its state. It returns
// nil if there is none.
func (s *stateStore) open(logger *slog.Logger) *savedState {
	if s.path == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != nil {
		return nil
	}
	state, err := s.read(logger)
	s.logFirstError(logger, err)
	return state
}

func (s *stateStore) read(logger *slog.Logger) (*savedState, error) {
	lock, err := lockState(s.path)
	if err != nil {
		return nil, err
	}
	state, err := readState(s.path)
	if _, bad := errors.AsType[notStateError](err); bad {
		logger.Error("alert: state file is damaged or foreign, starting without it", "file", s.path,
			"renamed", s.path+".bad", "error", err.Error())
		err = os.Rename(s.path, s.path+".bad")
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	s.lock = lock
	return state, nil
}

// logFirstError logs the first of several errors, and the success after them.
func (s *stateStore) logFirstError(logger *slog.Logger, err error) {
	switch {
	case err != nil && !s.failing:
		logger.Error("alert: state file cannot be used, will retry", "file", s.path, "error", err.Error())
	case err == nil && s.failing:
		logger.Info("alert: state file is in use again", "file", s.path)
	}
	s.failing = err != nil
}

// saveAlerts writes the alerts of an evaluation, and those of removed rules.
func (s *stateStore) saveAlerts(c *setup, alerts []Alert, retired []*tracker, at time.Time) {
	if s.path == "" {
		return
	}
	state := savedState{At: at.Round(0), Rules: map[string]savedRule{}, silenced: map[string]bool{}}
	for _, a := range alerts {
		state.silenced[a.ID] = a.SilencedBy != ""
	}
	for _, t := range retired {
		state.add(t)
	}
	for _, e := range c.evaluators {
		for _, t := range e.trackers {
			if t.exists() {
				state.add(t)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.deliverers = state, c.deliverers
	s.save(c.config.Logger)
}

// saveDeliveries writes the file after a delivery.
func (s *stateStore) saveDeliveries(logger *slog.Logger) {
	if s.path == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save(logger)
}

func (s *stateStore) save(logger *slog.Logger) {
	if s.lock == nil {
		return
	}
	state := s.state
	state.Notifiers = map[string][]savedEntry{}
	empty := len(state.Alerts) == 0
	for _, d := range s.deliverers {
		entries := d.savedEntries()
		state.Notifiers[d.name] = entries
		empty = empty && len(entries) == 0
	}
	if empty && s.empty {
		return
	}
	content, err := state.encode()
	if err == nil {
		err = writeState(s.path, content)
	}
	s.empty = empty && err == nil
	s.logFirstError(logger, err)
}

// add adds a tracker.
func (s *savedState) add(t *tracker) {
	s.Rules[t.rule.Name] = savedRule{t.rule.Annotations, t.rule.When.threshold, t.rule.When.below}
	s.Alerts = append(s.Alerts, savedAlert{
		Labels: t.labels, Phase: t.phase, Bad: t.bad, Silenced: s.silenced[t.id],
		ActiveAt: t.activeAt, FiredAt: t.firedAt, ClearedAt: t.clearedAt, ResolvedAt: t.resolvedAt,
		ValueName: t.valueName, Value: t.latest.Value, Calls: t.latest.Calls, BadCalls: t.latest.Bad,
	})
}
